"""Conda prefixes and venvs written file by file, for tests of what reads them."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TORCH_BUILD = "py3.10_cuda11.8_cudnn9.1.0_0"
SITE = "lib/python3.10/site-packages"


def sha256(data: bytes | str) -> str:
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def conda_record(
    prefix: Path, name: str, version: str, build: str, files: Mapping[str, str], **more: Any
) -> dict[str, Any]:
    """Install a conda package: its files and its record."""
    for path, text in files.items():
        (prefix / path).parent.mkdir(parents=True, exist_ok=True)
        (prefix / path).write_text(text)
    paths = [
        {"_path": p, "path_type": "hardlink", "sha256": sha256(t), "size_in_bytes": len(t)} for p, t in files.items()
    ]
    url = f"https://conda.anaconda.org/conda-forge/linux-64/{name}-{version}-{build}.conda"
    record = {
        "name": name, "version": version, "build": build, "build_number": 0, "subdir": "linux-64", "url": url,
        "channel": "https://conda.anaconda.org/conda-forge", "sha256": sha256(url), "files": list(files),
        "paths_data": {"paths_version": 1, "paths": paths}, **more,
    }  # fmt: skip
    meta = prefix / "conda-meta" / f"{name}-{version}-{build}.json"
    meta.parent.mkdir(parents=True, exist_ok=True)
    meta.write_text(json.dumps(record))
    return record


def dist_info(name: str, version: str, installer: str) -> dict[str, str]:
    """Return the files of a Python distribution with one module, below site-packages."""
    info, module = f"{name.replace('-', '_')}-{version}.dist-info", f"{name.replace('-', '_')}.py"
    digest = base64.urlsafe_b64encode(bytes.fromhex(sha256("x = 1\n"))).decode().rstrip("=")
    return {
        module: "x = 1\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/INSTALLER": f"{installer}\n",
        f"{info}/RECORD": f"{module},sha256={digest},6\n{info}/METADATA,,\n",
    }


def pip_install(site: Path, name: str, version: str, direct_url: Mapping[str, Any] | None = None) -> None:
    """Install a Python distribution as pip does."""
    for path, text in dist_info(name, version, "pip").items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)
    if direct_url:
        (site / f"{name.replace('-', '_')}-{version}.dist-info" / "direct_url.json").write_text(json.dumps(direct_url))


def conda_prefix(folder: Path) -> Path:
    """Return a prefix with python, pytorch and numpy of conda."""
    conda_record(folder, "python", "3.10.14", "hd12c33a_0_cpython", {"bin/python3.10": "#!", f"{SITE}/README.txt": "r"})
    channel = "https://conda.anaconda.org/pytorch"
    torch = {f"{SITE}/torch/__init__.py": "t = 1\n"}
    url = f"{channel}/linux-64/pytorch-2.5.1-{TORCH_BUILD}.tar.bz2"
    conda_record(folder, "pytorch", "2.5.1", TORCH_BUILD, torch, channel=channel, url=url)
    numpy = {f"{SITE}/{path}": text for path, text in dist_info("numpy", "1.26.4", "conda").items()}
    conda_record(folder, "numpy", "1.26.4", "py310hb13e2d6_0", numpy)
    return folder


def venv(folder: Path, version: str = "3.11.7", **packages: str) -> Path:
    """Return a venv with these packages."""
    site = folder / f"lib/python{'.'.join(version.split('.')[:2])}/site-packages"
    site.mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text(
        f"home = /nowhere/bin\ninclude-system-site-packages = false\nversion = {version}\n"
    )
    for name, release in packages.items():
        pip_install(site, name.replace("_", "-"), release)
    return folder
