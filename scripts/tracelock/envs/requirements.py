"""The lock of a venv: pip's requirement files with hashes, read for a given Python."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tracelock.envs.package import pip_name
from tracelock.errors import Problem, TracelockError


@dataclass(frozen=True)
class Requirement:
    """One pinned line of a requirement file.

    Parameters
    ----------
    sha256
        Digests that pip accepts for the archive: one for each platform and Python.
    where
        File and line, for messages.
    """

    name: str
    version: str
    sha256: tuple[str, ...]
    where: str


def read_requirements(path: Path, python: str | None = None) -> tuple[Requirement, ...]:
    """Read a requirement file in which every line pins one version.

    Parameters
    ----------
    python
        Version of the interpreter whose markers count (``3.11.7``); that of the running one if ``None``.

    Raises
    ------
    TracelockError
        If the file cannot be read or a line does not pin a version.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise TracelockError(Problem(str(path), f"cannot be read: {error.strerror}")) from None
    except UnicodeDecodeError as error:
        raise TracelockError(Problem(str(path), f"is not UTF-8 (byte {error.start})", "save it as UTF-8")) from None
    environment = _marker_environment(python)
    problems: list[Problem] = []
    found = [_parse(line, f"{path}:{number}", environment, problems) for number, line in _logical_lines(text)]
    if problems:
        raise TracelockError(problems)
    return tuple(requirement for requirement in found if requirement)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that pip sees: continued ones joined, comments and blanks dropped, options left out."""
    joined, start = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        start = start or number
        joined += re.sub(r"(^|\s)#.*$", "", line)
        if joined.endswith("\\"):
            joined = joined[:-1] + " "
            continue
        if joined.strip() and not joined.lstrip().startswith("-"):
            yield start, joined.strip()
        joined, start = "", 0


def _marker_environment(python: str | None) -> dict[str, str]:
    if python is None:
        return {}
    return {"python_full_version": python, "python_version": ".".join(python.split(".")[:2])}


def _parse(line: str, where: str, environment: Mapping[str, str], problems: list[Problem]) -> Requirement | None:
    from packaging.requirements import InvalidRequirement
    from packaging.requirements import Requirement as Parsed

    text, *options = re.split(r"\s+--", line)
    try:
        parsed = Parsed(text.strip())
    except InvalidRequirement as error:
        problems.append(Problem(where, f"is no requirement: {' '.join(str(error).split())[:200]}"))
        return None
    if parsed.marker and not parsed.marker.evaluate(dict(environment)):
        return None
    pins = [spec.version for spec in parsed.specifier if spec.operator in ("==", "===")]
    if len(pins) != 1 or pins[0].endswith("*"):
        problems.append(Problem(where, f"{parsed.name} is not pinned to one version", "lock it: name==version"))
        return None
    hashes = tuple(option[12:].strip() for option in options if option.startswith("hash=sha256:"))
    return Requirement(pip_name(parsed.name), pins[0], hashes, where)


def lock_files(folder: Path, torch_version: str | None) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return the requirement locks of a project's folder: those that must be installed, and those that may be.

    Parameters
    ----------
    torch_version
        Version of the torch that is installed: it tells which of the locks ``torch-*.lock`` applies.
    """
    base, dev = folder / "base.lock", folder / "dev.lock"
    kind = "torch-cpu.lock" if torch_version and "+" in torch_version and "+cpu" in torch_version else "torch-cuda.lock"
    candidates = [folder / kind, *sorted(folder.glob("torch-*.lock"))]
    torch = next((path for path in candidates if path.is_file() and _names(path, torch_version)), None)
    must = [path for path in (base, torch) if path is not None and path.is_file()]
    if not must:
        raise TracelockError(Problem(str(folder), "holds no base.lock", "expected the folder of the requirement locks"))
    return tuple(must), tuple(path for path in (dev,) if path.is_file())


def _names(path: Path, torch_version: str | None) -> bool:
    return any(r.name == "torch" and same_version(r.version, torch_version) for r in read_requirements(path))


def same_version(locked: str, installed: str | None) -> bool:
    """Return whether pip would take `installed` for ``==locked``: a local label counts if the lock has one."""
    if installed is None:
        return False
    try:
        from packaging.version import InvalidVersion, Version
    except ImportError:  # an environment without it can still be checked: conda's locks write versions as pip does
        return locked.lower() == installed.lower()
    try:
        wanted, found = Version(locked), Version(installed)
    except InvalidVersion:
        return locked == installed
    return wanted == (found if wanted.local else Version(found.public))


def merge(files: Sequence[Sequence[Requirement]]) -> dict[str, Requirement]:
    """Return the requirements of several files by name; two files must not pin different versions.

    Raises
    ------
    TracelockError
        If they do.
    """
    merged: dict[str, Requirement] = {}
    problems = []
    for requirement in (requirement for file in files for requirement in file):
        first = merged.setdefault(requirement.name, requirement)
        if not same_version(first.version, requirement.version):
            what = f"pins {requirement.name} {requirement.version}, but {first.where} pins {first.version}"
            problems.append(Problem(requirement.where, what))
    if problems:
        raise TracelockError(problems)
    return merged
