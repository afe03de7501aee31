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
from tracelock.envs.manifest import is_pin, read_pin
from tracelock.envs.package import Package, completed
from tracelock.envs.requirements import Requirement, lock_files, merge, read_requirements
from tracelock.envs.snapshot import write_snapshot
from tracelock.errors import Problem, TracelockError
from tracelock.io import write_json


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
class _Answer:
    """The gate's answer, with what a snapshot takes from the locks."""

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
    answer = _answer(installed, locks, deep)
    write_snapshot(folder, environment, replace(installed, packages=answer.packages), answer.hashes)
    more = {"deep": deep, "locks": [file_identity(path) for path in answer.files]}
    write_json(folder / "check.json", {**answer.check.to_json(environment), **more})
    report(environment, answer.check, allow_unlocked)
    return answer.check


def _answer(installed: Installed, locks: Locks, deep: bool) -> _Answer:
    if installed.kind == "venv" and (locks.files or locks.driver):
        return _answer_for_venv(installed, locks, deep)
    if not locks.files:
        return _Answer(unlocked_check(installed), installed.packages, {}, ())
    locked = locked_packages(locks.files, locks.platform)
    return _Answer(check_packages(installed, locked, deep), completed(installed.packages, locked), {}, locks.files)


def _answer_for_venv(installed: Installed, locks: Locks, deep: bool) -> _Answer:
    must, may = locks.files, tuple[Path, ...]()
    if locks.driver is not None:
        torch = next((package.version for package in installed.pip if package.name == "torch"), None)
        must, may = lock_files(locks.driver, torch)
    required, optional = (_merged(paths, installed) for paths in (must, may))
    hashes = {name: requirement.sha256 for name, requirement in {**optional, **required}.items()}
    return _Answer(check_requirements(installed, required, optional, deep), installed.packages, hashes, must)


def _merged(paths: Sequence[Path], installed: Installed) -> dict[str, Requirement]:
    return merge([read_requirements(path, installed.python) for path in paths])


def locked_packages(files: Sequence[Path], platform: str | None) -> tuple[Package, ...]:
    """Return the packages of a conda-lock or pin file.

    Raises
    ------
    TracelockError
        If there is more than one, or it cannot be read.
    """
    if len(files) != 1:
        raise TracelockError(Problem("--lock", f"a conda prefix has one lock, {len(files)} were given"))
    path = files[0]
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise TracelockError(Problem(str(path), f"cannot be read: {error.strerror}")) from None
    if is_pin(text):
        return read_pin(path, text).packages
    raise TracelockError(Problem(str(path), "is neither a conda-lock file nor a pin file"))


def report(environment: str, check: Check, allow_unlocked: bool) -> None:
    """Print the fatal differences as a table and the line that says what to do, to standard error."""
    fatal = [difference for difference in check.differences if difference.fatal]
    if not fatal:
        return
    print(difference_table(fatal), file=sys.stderr)
    word = "warning" if allow_unlocked else "error"
    print(f"tracelock: {word}: {gate_problem(environment, check)}", file=sys.stderr)
