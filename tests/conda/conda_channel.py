"""A conda channel made of what this machine has: its CPython, and the packages of this environment, real torch among
them. Served on loopback over http, because no client compares the hashes of ``file://`` packages.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import re
import sys
import tarfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from conda_package_streaming.create import conda_builder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

SUBDIR = {"x86_64": "linux-64", "aarch64": "linux-aarch64"}.get(platform.machine(), "linux-64")
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
SITE = f"lib/{PYTHON}/site-packages"
CONDA_NAMES = {"torch": "pytorch", "matplotlib": "matplotlib-base", "typing-extensions": "typing_extensions"}
# Not needed to train and to measure; half of torch's size.
LEFT_OUT = re.compile(r"torch/(include|test|share|bin(?!/torch_shm_manager)|lib/libtorchbind_test\.so)(/|$)")
STDLIB_LEFT_OUT = {"test", "site-packages", "dist-packages", "idlelib", "tkinter", "ensurepip", "lib2to3", "turtledemo"}


@dataclass(frozen=True)
class Content:
    """A package before it is packed.

    Parameters
    ----------
    files
        Path inside the prefix → the file on this machine, or its bytes.
    placeholder
        Folder that the installer replaces by the prefix in text files that name it.
    """

    name: str
    version: str
    build: str
    depends: tuple[str, ...]
    files: dict[str, Path | bytes]
    placeholder: str | None = None

    @property
    def stem(self) -> str:
        """Return the name of the archive without its ending."""
        return f"{self.name}-{self.version}-{self.build}"


def python_content() -> Content:
    """Return this machine's CPython, able to stand in any folder."""
    base, version = Path(sys.base_prefix), platform.python_version()
    library = base / "lib" / PYTHON
    files: dict[str, Path | bytes] = {f"lib/{PYTHON}/{p.relative_to(library)}": p for p in _stdlib(library)}
    executable = (base / "bin" / PYTHON).read_bytes()
    for name in (PYTHON, "python3", "python"):
        files[f"bin/{name}"] = _relocated(executable, base)
    files |= {f"lib/{p.name}": p for p in (base / "lib").glob(f"lib{PYTHON}*.so.1.0")}
    # Debian's Python looks for packages elsewhere; this makes it look here, too.
    files[f"lib/{PYTHON}/sitecustomize.py"] = (
        b"import site, sys\n"
        b"_own = '%s/lib/python%d.%d/site-packages' % (sys.prefix, *sys.version_info[:2])\n"
        b"if _own not in sys.path:\n    site.addsitedir(_own)\n"
    )
    return Content("python", version, "0_cpython", (), files, str(base))


def _stdlib(library: Path) -> Iterator[Path]:
    for folder, inner, names in os.walk(library):
        left_out = STDLIB_LEFT_OUT if Path(folder) == library else set()
        inner[:] = [n for n in inner if n not in left_out and n != "__pycache__" and not n.startswith("config-")]
        yield from (Path(folder) / name for name in names if name != "sitecustomize.py" and not name.endswith(".a"))


def _relocated(executable: bytes, base: Path) -> bytes:
    """Return the program with the folder of its shared library relative to itself, in the place of the old one."""
    old, new = f"{base}/lib".encode() + b"\0", b"$ORIGIN/../lib\0"
    return executable.replace(old, new.ljust(len(old), b"\0")) if len(new) <= len(old) else executable


def distribution_content(name: str, files: dict[str, Path | bytes] | None = None) -> Content:
    """Return an installed Python distribution as a conda package, its dependencies taken from its metadata."""
    found = distribution(name)
    return Content(
        conda_name(name),
        found.version.replace("+", "_"),
        f"py{sys.version_info.major}{sys.version_info.minor}_0",
        tuple(sorted({PYTHON_PIN, *map(conda_name, requirements(found))})),
        files if files is not None else dict(_installed_files(found)),
    )


PYTHON_PIN = f"python {sys.version_info.major}.{sys.version_info.minor}.*"


def conda_name(name: str) -> str:
    """Return what conda calls a Python distribution."""
    return CONDA_NAMES.get(canonicalize_name(name), canonicalize_name(name))


def requirements(found: Distribution) -> Iterator[str]:
    """Yield the names that a distribution needs on this machine, without its extras."""
    for text in found.requires or ():
        parsed = Requirement(text)
        if parsed.marker is None or parsed.marker.evaluate({"extra": ""}):
            yield parsed.name


def closure(names: Iterable[str]) -> list[str]:
    """Return the distributions that `names` need, themselves included."""
    found: dict[str, None] = {}
    waiting = [canonicalize_name(name) for name in names]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = None
            waiting += [canonicalize_name(needed) for needed in requirements(distribution(name))]
    return sorted(found)


def _installed_files(found: Distribution) -> Iterator[tuple[str, Path | bytes]]:
    for entry in found.files or ():
        text = entry.as_posix()
        if text.startswith("..") or text.endswith(".pyc") or LEFT_OUT.match(text):
            continue
        # Whoever builds conda packages names conda as the installer.
        owner = b"conda\n" if text.endswith(".dist-info/INSTALLER") else None
        yield f"{SITE}/{text}", owner or Path(str(found.locate_file(entry)))


def pack(content: Content, folder: Path) -> dict[str, Any]:
    """Write a package's archive to `folder` and return its record for ``repodata.json``."""
    index = {
        "name": content.name,
        "version": content.version,
        "build": content.build,
        "build_number": 0,
        "depends": list(content.depends),
        "subdir": SUBDIR,
        "license": "see the package",
        "timestamp": 1700000000000,
    }
    paths = []
    with conda_builder(content.stem, folder, compression_level=1, compression_threads=2) as archive:
        for path, source in sorted(content.files.items()):
            data = source if isinstance(source, bytes) else source.read_bytes()
            paths.append(_path_entry(path, data, content.placeholder))
            executable = path.startswith("bin/") or (isinstance(source, Path) and os.access(source, os.X_OK))
            _add(archive, path, data, 0o755 if executable else 0o644)
        _add(archive, "info/index.json", json.dumps(index).encode())
        _add(archive, "info/paths.json", json.dumps({"paths": paths, "paths_version": 1}).encode())
    data = (folder / f"{content.stem}.conda").read_bytes()
    digests = {name: hashlib.new(name, data).hexdigest() for name in ("md5", "sha256")}
    return {**index, **digests, "size": len(data)}


def _path_entry(path: str, data: bytes, placeholder: str | None) -> dict[str, Any]:
    entry: dict[str, Any] = {"_path": path, "path_type": "hardlink", "sha256": hashlib.sha256(data).hexdigest()}
    entry["size_in_bytes"] = len(data)
    if placeholder and placeholder.encode() in data and b"\0" not in data:
        entry |= {"prefix_placeholder": placeholder, "file_mode": "text"}
    return entry


def _add(archive: tarfile.TarFile, path: str, data: bytes, mode: int = 0o644) -> None:
    member = tarfile.TarInfo(path)
    member.size, member.mode, member.mtime = len(data), mode, 1700000000
    archive.addfile(member, io.BytesIO(data))


def write_channel(folder: Path, contents: Iterable[Content]) -> dict[str, dict[str, Any]]:
    """Write a channel with these packages to `folder` and return its records by file name."""
    (folder / SUBDIR).mkdir(parents=True, exist_ok=True)
    (folder / "noarch").mkdir(exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        records = list(pool.map(lambda content: pack(content, folder / SUBDIR), contents))
    named = {f"{r['name']}-{r['version']}-{r['build']}.conda": r for r in records}
    write_repodata(folder, named)
    return named


def write_repodata(folder: Path, records: dict[str, dict[str, Any]]) -> None:
    """Write what the channel says that it holds."""
    for subdir, packages in ((SUBDIR, records), ("noarch", {})):
        document = {"info": {"subdir": subdir}, "packages": {}, "packages.conda": packages, "repodata_version": 1}
        (folder / subdir / "repodata.json").write_text(json.dumps(document))
