"""An environment comes back as it was, or not at all."""

from __future__ import annotations

import hashlib
import json
import platform
import shlex
import sys
import zipfile
from pathlib import Path

import pytest
from prefixes import SITE, conda_prefix, conda_record, dist_info, pip_install

from tracelock.envs.installed import read_installed
from tracelock.envs.package import Package
from tracelock.envs.restore import find_python, restore
from tracelock.envs.snapshot import write_snapshot
from tracelock.errors import TracelockError
from tracelock.io import schema, write_json


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a wheel that pip finds without an index."""
    files = dist_info("somebodys-tool", "1.0", "pip")
    info = "somebodys_tool-1.0.dist-info"
    files[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/RECORD"] += f"{info}/WHEEL,,\n{info}/RECORD,,\n"
    del files[f"{info}/INSTALLER"]
    path = tmp_path / "wheels" / "somebodys_tool-1.0-py3-none-any.whl"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(path.parent))
    return path


def venv_snapshot(folder: Path, sha256: str) -> Path:
    """Write the snapshot of a venv with a package whose hash is known and one that nobody else has."""
    mine = Package("mine", "1", "pip", direct_url={"url": "file:///…/mine"}, unreproducible="installed from a folder")
    packages = [Package("somebodys-tool", "1.0", "pip"), mine]
    document = {"schema": schema("packages"), "kind": "venv", "python": platform.python_version()}
    write_json(folder / "packages.json", {**document, "packages": [package.to_json() for package in packages]})
    line = f"# python: 3\nsomebodys-tool==1.0 --hash=sha256:{sha256}\n# mine==1: installed from a folder\n"
    (folder / "explicit.txt").write_text(line)
    return folder


def test_a_venv_comes_back_and_what_nobody_else_has_is_left_out(tmp_path: Path, wheel: Path) -> None:
    folder = venv_snapshot(tmp_path / "snapshot", hashlib.sha256(wheel.read_bytes()).hexdigest())
    restored = restore(folder, tmp_path / "wieder da ü")
    found = {package.name: package.version for package in read_installed(restored.prefix).pip}
    assert found["somebodys-tool"] == "1.0"
    assert [problem.where for problem in restored.left_out] == ["mine"]
    assert "mine" not in found


def test_an_archive_with_another_hash_is_refused_and_nothing_remains(tmp_path: Path, wheel: Path) -> None:
    folder = venv_snapshot(tmp_path / "snapshot", "0" * 64)
    with pytest.raises(TracelockError, match=r"pip could not complete .*restored: ") as caught:
        restore(folder, tmp_path / "restored")
    assert caught.value.exit_code == 1
    assert not (tmp_path / "restored").exists()


def test_what_stands_there_already_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "restored").mkdir()
    (tmp_path / "restored" / "thesis.txt").write_text("years of work")
    with pytest.raises(TracelockError, match="is there already"):
        restore(venv_snapshot(tmp_path / "snapshot", "0" * 64), tmp_path / "restored")
    assert (tmp_path / "restored" / "thesis.txt").read_text() == "years of work"


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """Return the snapshot of a conda prefix."""
    write_snapshot(tmp_path / "snapshot", "bench", read_installed(conda_prefix(tmp_path / "original")), {})
    return tmp_path / "snapshot"


def fake_conda(tmp_path: Path, made: Path | None, code: int = 0) -> str:
    """Return a program that "builds" by copying `made` to the prefix, and writes down how it was called."""
    program = tmp_path / "bin" / "conda"
    program.parent.mkdir(exist_ok=True)
    copy = f'cp -r {shlex.quote(str(made))} "$8"' if made else 'mkdir -p "$8/half"; echo "ChecksumMismatchError: x" >&2'
    program.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo "conda 24.9.2" && exit 0\n'
        f'set -- "$1" "$2" "$3" "$4" "$5" "$6" "$7" "$7"\necho "$@" > {shlex.quote(str(tmp_path / "called"))}\n'
        f'cp "$5" {shlex.quote(str(tmp_path / "listed"))}\n{copy}\nexit {code}\n'
    )
    program.chmod(0o755)
    return str(program)


def test_a_conda_environment_comes_back_by_its_explicit_list(tmp_path: Path, snapshot: Path) -> None:
    restored = restore(snapshot, tmp_path / "restored", fake_conda(tmp_path, tmp_path / "original"))
    assert restored.digest == json.loads((snapshot / "packages.json").read_text())["digest"]
    assert (tmp_path / "listed").read_text() == (snapshot / "explicit.txt").read_text()
    assert (tmp_path / "called").read_text().startswith("create --yes --quiet --file ")


def test_mirrors_change_addresses_and_no_hash(tmp_path: Path, snapshot: Path, monkeypatch) -> None:
    monkeypatch.setenv("TRACELOCK_CHANNEL_MIRRORS", "https://mirror.example.org/conda")
    restore(snapshot, tmp_path / "restored", fake_conda(tmp_path, tmp_path / "original"))
    listed = (tmp_path / "listed").read_text()
    assert "conda.anaconda.org" not in listed
    assert listed.replace("mirror.example.org/conda", "conda.anaconda.org") == (snapshot / "explicit.txt").read_text()


def test_a_build_that_fails_leaves_nothing_and_says_what_the_client_said(tmp_path: Path, snapshot: Path) -> None:
    with pytest.raises(TracelockError, match="its hash differs") as caught:
        restore(snapshot, tmp_path / "restored", fake_conda(tmp_path, None, 1))
    assert caught.value.exit_code == 1
    assert not (tmp_path / "restored").exists()


def test_a_build_that_comes_out_different_is_told_package_by_package(tmp_path: Path, snapshot: Path) -> None:
    other = conda_prefix(tmp_path / "other")
    (other / "conda-meta" / "numpy-1.26.4-py310hb13e2d6_0.json").unlink()
    conda_record(other, "numpy", "1.26.3", "0", {})
    pip_install(other / SITE, "stray", "1")
    with pytest.raises(TracelockError) as caught:
        restore(snapshot, tmp_path / "restored", fake_conda(tmp_path, other))
    told = [problem.what for problem in caught.value.problems]
    assert "numpy came out as 1.26.3 0, expected 1.26.4 py310hb13e2d6_0" in told
    assert "stray came out as 1, expected absent" in told
    assert not (tmp_path / "restored").exists()


def test_without_a_client_the_way_to_one_is_told(tmp_path: Path, snapshot: Path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    for name in ("CONDA_EXE", "MAMBA_EXE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(TracelockError, match="tracelock conda install"):
        restore(snapshot, tmp_path / "restored")


def test_a_package_without_an_address_cannot_be_restored_and_is_named(tmp_path: Path) -> None:
    prefix = conda_prefix(tmp_path / "original")
    conda_record(prefix, "homemade", "1", "0", {}, url=None)
    write_snapshot(tmp_path / "snapshot", "bench", read_installed(prefix), {})
    with pytest.raises(TracelockError, match="does not tell where homemade came from"):
        restore(tmp_path / "snapshot", tmp_path / "restored", fake_conda(tmp_path, prefix))


def test_the_python_of_a_venv_is_one_of_its_minor_version() -> None:
    minor = ".".join(platform.python_version().split(".")[:2])
    assert find_python(f"{minor}.99") == sys.executable
    assert find_python(None) == sys.executable
    with pytest.raises(TracelockError, match=r"python3\.99: was not found"):
        find_python("3.99.1")


def test_a_folder_that_is_no_snapshot_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(TracelockError, match=r"packages\.json: cannot be read"):
        restore(tmp_path, tmp_path / "restored")
