"""Record an environment beside its runs: the snapshot, and whether it is what its lock says."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tracelock.envs.difference import difference_table
from tracelock.envs.gate import (
    Check,
    check_packages,
    check_requirements,
    file_identity,
    gate_problem,
    unlocked_check,
)
from tracelock.envs.installed import Installed, read_installed
from tracelock.envs.manifest import read_manifest, this_platform
from tracelock.envs.package import Package, completed
from tracelock.envs.requirements import Requirement, lock_files, merge, read_requirements
from tracelock.envs.snapshot import write_snapshot
from tracelock.errors import Problem, TracelockError
from tracelock.io import write_json
from tracelock.runner.fingerprint import fingerprint


@dataclass(frozen=True)
class Locks:
    """What an environment is held against.

    Parameters
    ----------
    files
        One conda-lock or pin file; for a venv requirement files.
    driver
        Folder of the project's requirement locks: a venv is held against those that apply to it.
    platform
        Platform of the lock, or ``None`` for that of the prefix.
    """

    files: tuple[Path, ...] = ()
    driver: Path | None = None
    platform: str | None = None


@dataclass(frozen=True)
class Answer:
    """The gate's answer, with what a snapshot takes from the locks.

    Parameters
    ----------
    packages
        What is installed, with hashes and addresses of the lock.
    hashes
        For pip packages: the archive digests that their lock allows, by name.
    files
        The locks that were used.
    """

    check: Check
    packages: tuple[Package, ...]
    hashes: Mapping[str, Sequence[str]]
    files: tuple[Path, ...]


def record_environment(
    folder: Path, environment: str, prefix: Path, locks: Locks, *, deep: bool = False, allow_unlocked: bool = False
) -> Check:
    """Write the snapshot of `prefix` and ``check.json`` to `folder`, print what differs, and return the answer.

    Parameters
    ----------
    deep
        Compare the digest of every file of every package too.
    """
    installed = read_installed(prefix)
    answer = hold_against(installed, locks, deep)
    write_snapshot(folder, environment, replace(installed, packages=answer.packages), answer.hashes)
    now = {"fingerprint": fingerprint(prefix)}
    more = {**now, "deep": deep, "locks": [file_identity(path) for path in answer.files]}
    write_json(folder / "check.json", {**answer.check.to_json(environment), **more})
    report(environment, answer.check, allow_unlocked)
    return answer.check


def hold_against(installed: Installed, locks: Locks, deep: bool = False) -> Answer:
    """Compare what is installed with its locks.

    Raises
    ------
    TracelockError
        If a lock cannot be read or is of another kind than the environment.
    """
    if installed.kind == "venv" and (locks.files or locks.driver):
        return _answer_for_venv(installed, locks, deep)
    if not locks.files:
        return Answer(unlocked_check(installed), installed.packages, {}, ())
    locked = locked_packages(locks.files, locks.platform or _platform(installed))
    return Answer(check_packages(installed, locked, deep), completed(installed.packages, locked), {}, locks.files)


def _platform(installed: Installed) -> str:
    """Return the platform that a prefix was built for, which need not be this machine's."""
    subdirs = [p.subdir for p in installed.conda if p.subdir and p.subdir != "noarch"]
    return max(set(subdirs), key=subdirs.count) if subdirs else this_platform()


def _answer_for_venv(installed: Installed, locks: Locks, deep: bool) -> Answer:
    must, may = locks.files, tuple[Path, ...]()
    if locks.driver is not None:
        torch = next((package.version for package in installed.pip if package.name == "torch"), None)
        must, may = lock_files(locks.driver, torch)
    required, optional = (_merged(paths, installed) for paths in (must, may))
    hashes = {name: requirement.sha256 for name, requirement in {**optional, **required}.items()}
    return Answer(check_requirements(installed, required, optional, deep), installed.packages, hashes, must)


def _merged(paths: Sequence[Path], installed: Installed) -> dict[str, Requirement]:
    for path in paths:
        if path.suffix in (".yml", ".yaml") or path.name.endswith(".pin.txt"):
            what = f"is a lock for conda, but {installed.prefix} is a venv"
            raise TracelockError(Problem(str(path), what, "name its requirement files with hashes"))
    return merge([_pinned(path, installed.python) for path in paths])


def _pinned(path: Path, python: str | None) -> tuple[Requirement, ...]:
    """Return what a venv's lock pins: a ``uv.lock``, or a requirement file whose every line pins one version."""
    if path.name == "uv.lock":
        from tracelock.envs.uv import uv_requirements  # needs Python 3.11

        return uv_requirements(path, this_platform(), python)
    return read_requirements(path, python)


def locked_packages(files: Sequence[Path], platform: str | None) -> tuple[Package, ...]:
    """Return the packages of a conda-lock or pin file.

    Raises
    ------
    TracelockError
        If there is more than one, or it cannot be read.
    """
    if len(files) != 1:
        raise TracelockError(Problem("--lock", f"a conda prefix has one lock, {len(files)} were given"))
    manifest = read_manifest(files[0], platform)
    if manifest.source not in ("lock", "pin", "pixi"):
        raise TracelockError(Problem(manifest.label, "is neither a conda-lock file nor a pin file nor a pixi.lock"))
    return manifest.packages


def report(environment: str, check: Check, allow_unlocked: bool) -> None:
    """Print the fatal differences as a table and the line that says what to do, to standard error."""
    fatal = [difference for difference in check.differences if difference.fatal]
    if not fatal:
        return
    print(difference_table(fatal), file=sys.stderr)
    word = "warning" if allow_unlocked else "error"
    print(f"tracelock: {word}: {gate_problem(environment, check)}", file=sys.stderr)
