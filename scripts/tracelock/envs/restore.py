"""Build an environment again from its snapshot, and check that it came out the same: whole, or not there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tracelock.envs.clients import Client, failed, find_client
from tracelock.envs.diff import Change, compare_manifests
from tracelock.envs.installed import Installed, read_installed
from tracelock.envs.manifest import Manifest, snapshot_content
from tracelock.envs.mirrors import mirrors_from_environment
from tracelock.envs.package import Package
from tracelock.envs.snapshot import pip_requirement, pytorch_indexes
from tracelock.errors import EXIT_FAILED, Problem, TracelockError


@dataclass(frozen=True)
class Restored:
    """What came of it.

    Parameters
    ----------
    left_out
        Packages that nobody else can install, each with the reason.
    notes
        Differences that do not make it another environment: the same release, built anew from its source.
    """

    prefix: Path
    digest: str
    left_out: tuple[Problem, ...]
    notes: tuple[Change, ...]


@dataclass(frozen=True)
class _Snapshot:
    folder: Path
    kind: str
    python: str | None
    packages: tuple[Package, ...]
    explicit: str


def restore(folder: Path, prefix: Path, conda: str | None = None, python: str | None = None) -> Restored:
    """Build the environment of the snapshot in `folder` at `prefix`.

    Parameters
    ----------
    conda
        The client to use; by default the one that is found.
    python
        For a venv, the interpreter to use; by default one of the version that the snapshot names.

    Raises
    ------
    TracelockError
        If something stands at `prefix`, a program is absent, the build fails or comes out different. `prefix` is
        then removed again.
    """
    snapshot = _read(folder)
    check_place(prefix)
    try:
        if snapshot.kind == "conda":
            _build_conda(snapshot, prefix, conda)
        else:
            _build_venv(snapshot, prefix, python)
        return _checked(snapshot, read_installed(prefix))
    except BaseException:
        shutil.rmtree(prefix, ignore_errors=True)
        raise


def _read(folder: Path) -> _Snapshot:
    path = folder / "packages.json" if folder.is_dir() else folder
    kind, python, packages = snapshot_content(path)
    try:
        explicit = path.with_name("explicit.txt").read_text(encoding="utf-8")
    except OSError as error:
        raise TracelockError(
            Problem(str(path.with_name("explicit.txt")), f"cannot be read: {error.strerror}")
        ) from None
    return _Snapshot(path.parent, kind, python, packages, explicit)


def _build_conda(snapshot: _Snapshot, prefix: Path, program: str | None) -> None:
    client = find_client(program)
    check_name(client, prefix)
    lost = [p.name for p in snapshot.packages if p.manager == "conda" and not p.url]
    if lost:
        what = f"does not tell where {', '.join(lost)} came from"
        raise TracelockError(Problem(str(snapshot.folder / "explicit.txt"), what, "restore from environment.yml"))
    with tempfile.TemporaryDirectory() as temporary:
        listed = Path(temporary) / "explicit.txt"
        listed.write_text(_mirrored(snapshot.explicit), encoding="utf-8")
        run_program(_create_command(client, listed, prefix), f"{client.kind} could not build {prefix}")
    _install(prefix, [package for package in snapshot.packages if package.manager == "pip"], {})


def check_place(prefix: Path) -> None:
    """Refuse a folder in which something stands."""
    if prefix.exists() and (not prefix.is_dir() or any(prefix.iterdir())):
        raise TracelockError(Problem(str(prefix), "is there already", "name another folder, or remove it"))


def check_name(client: Client, prefix: Path) -> None:
    """Refuse what conda would refuse after everything was downloaded: some characters in the folder's name."""
    name = prefix.resolve().name
    bad = sorted(set(name) & set("#/ :"))
    if client.kind != "micromamba" and bad:
        plain = re.sub(r"[#/ :]+", "-", name)
        what = f"conda takes no environment whose folder's name has {', '.join(map(repr, bad))} in it"
        raise TracelockError(Problem(str(prefix), what, f"name another folder, such as --prefix {plain}"))


def _mirrored(explicit: str) -> str:
    """Return the list with its addresses on the mirrors of ``TRACELOCK_CHANNEL_MIRRORS``; hashes stay."""
    mirrors = mirrors_from_environment()
    lines = explicit.splitlines(keepends=True)
    return "".join(line if line.startswith(("#", "@")) else mirrors.rewrite(line) for line in lines)


def _create_command(client: Client, listed: Path, prefix: Path) -> list[str]:
    command = [str(client.path), "create", "--yes", "--quiet", "--file", str(listed), "--prefix", str(prefix)]
    # A user's default packages would be more than the list; micromamba has no such setting.
    return command if client.kind == "micromamba" else [*command, "--no-default-packages"]


def _build_venv(snapshot: _Snapshot, prefix: Path, python: str | None) -> None:
    interpreter = python or find_python(snapshot.python)
    run_program([interpreter, "-m", "venv", str(prefix)], f"{interpreter} could not make a venv")
    lines = snapshot.explicit.splitlines()
    hashed = {line.partition("==")[0]: line for line in lines if "--hash=" in line and not line.startswith("#")}
    _install(prefix, list(snapshot.packages), hashed)


def find_python(version: str | None) -> str:
    """Return an interpreter of a version: this one, or ``pythonX.Y`` on the path.

    Raises
    ------
    TracelockError
        If there is none of the same minor version.
    """
    minor = ".".join((version or "").split(".")[:2])
    if not minor or minor == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    found = shutil.which(f"python{minor}")
    if found is None:
        hint = f"install Python {minor}, or name an interpreter with --python"
        raise TracelockError(Problem(f"python{minor}", "was not found, and the snapshot was made with it", hint))
    return found


def _install(prefix: Path, packages: Sequence[Package], hashed: dict[str, str]) -> None:
    """Install pip packages, those with known hashes under pip's own check of them.

    pip takes hashes for all requirements of a call or for none, so there are several calls. Builds such as
    ``2.5.1+cu118`` have one of their own: PyTorch's index is asked for them alone, and only if no other has them.
    """
    special = [package for package in packages if pytorch_indexes([package])]
    for group in ([package for package in packages if package not in special], special):
        plain = [pip_requirement(package) for package in group if package.name not in hashed]
        with_hashes = [hashed[package.name] for package in group if package.name in hashed]
        indexes = [f"--index-url {index}" for index in pytorch_indexes(group)]
        for lines in (with_hashes, [line for line in plain if line]):
            try:
                _pip(prefix, lines)
            except TracelockError:
                if not indexes:
                    raise
                _pip(prefix, [*indexes, *lines])


def _pip(prefix: Path, lines: Sequence[str]) -> None:
    if not lines:
        return
    own = next(iter(prefix.glob("bin/python")), prefix / "bin" / "python3")
    has_pip = any(prefix.glob("lib/python3*/site-packages/pip"))
    pip = [str(own), "-m", "pip"] if has_pip else [sys.executable, "-m", "pip", "--python", str(own)]
    with tempfile.TemporaryDirectory() as temporary:
        listed = Path(temporary) / "requirements.txt"
        listed.write_text("\n".join(lines) + "\n", encoding="utf-8")
        options = ["--disable-pip-version-check", "--no-input", "--quiet", "--no-deps"]
        run_program([pip[0], *pip[1:], "install", *options, "-r", str(listed)], f"pip could not complete {prefix}")


def run_program(command: list[str], failure: str) -> None:
    """Run a program; packages of ``~/.local`` and of the caller's PYTHONPATH stay out of its sight."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**environment, "PYTHONNOUSERSITE": "1"}
    )
    if done.returncode:
        raise failed(failure, f"{done.stdout}\n{done.stderr}")


def _checked(snapshot: _Snapshot, installed: Installed) -> Restored:
    """Return the result, or raise with what differs; a package that nobody else can install may be missing."""
    venv = snapshot.kind == "venv"
    wanted = [package for package in snapshot.packages if not package.unreproducible]
    first = Manifest("snapshot", str(snapshot.folder), tuple(wanted), snapshot.python if venv else None)
    second = Manifest("prefix", str(installed.prefix), installed.packages, installed.python if venv else None)
    changes = compare_manifests(first, second)
    notes = tuple(change for change in changes if _is_note(change))
    fatal = [change for change in changes if change not in notes]
    if fatal:
        raise TracelockError([_problem(installed.prefix, change) for change in fatal], EXIT_FAILED)
    left_out = tuple(Problem(p.name, str(p.unreproducible)) for p in snapshot.packages if p.unreproducible)
    return Restored(installed.prefix, installed.digest, left_out, notes)


def _is_note(change: Change) -> bool:
    # What venv itself puts there, and files of a wheel that was built here from the release's source.
    bootstrap = change.what == "added" and change.manager == "pip" and change.name in ("pip", "setuptools")
    return bootstrap or (change.what == "hash" and change.manager == "pip")


def _problem(prefix: Path, change: Change) -> Problem:
    return Problem(
        str(prefix), f"{change.name} came out as {change.after or 'absent'}, expected {change.before or 'absent'}"
    )
