"""``uv.lock``, the lock of a uv project: what of it is installed on one platform, for one Python.

The format is uv's own, versions 1 (revisions 0 to 3): one list of packages for all platforms, whose edges carry
environment markers. What a platform gets is found by following them from the project, as ``uv sync`` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomllib

from tracelock.envs.installed import without_login
from tracelock.envs.manifest import Manifest
from tracelock.envs.package import Package, pip_name
from tracelock.envs.pip_lines import marker_holds
from tracelock.envs.requirements import Requirement
from tracelock.errors import Problem, TracelockError
from tracelock.safe_yaml import shortened

_VERSION = 1
_LOCAL = ("virtual", "editable", "directory", "path")
_LIMIT_BYTES = 32 << 20
_SHA = re.compile(r"sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class _Lock:
    path: Path
    entries: Mapping[str, list[dict[str, Any]]]
    roots: tuple[dict[str, Any], ...]
    python: str | None


def read_uv(path: Path, text: str, platform: str, python: str | None = None) -> Manifest:
    """Read a ``uv.lock`` for a platform.

    Parameters
    ----------
    python
        Version of Python that markers ask about; the lowest that the lock allows if ``None``.

    Raises
    ------
    TracelockError
        If it is damaged, of another version, or names no project.
    """
    lock = _read(path, text)
    python = python or lock.python
    entries = list(_installed(lock, platform, python))
    packages = sorted({_package(entry).key: _package(entry) for entry in entries}.items())
    warnings = [
        Problem(str(path), f"{entry['name']} is a folder of the project", "its files are not part of the lock")
        for entry in entries
        if _local(entry) and entry not in lock.roots
    ]
    return Manifest("uv", str(path), tuple(package for _, package in packages), warnings=tuple(warnings))


def uv_requirements(path: Path, platform: str, python: str | None) -> tuple[Requirement, ...]:
    """Return what a ``uv.lock`` pins, with the digests of all archives, to hold a venv against it."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TracelockError(Problem(str(path), f"cannot be read: {error}")) from None
    lock = _read(path, text)
    found = _installed(lock, platform, python or lock.python)
    return tuple(
        Requirement(pip_name(entry["name"]), str(entry["version"]), _hashes(entry), str(path))
        for entry in found
        if not _local(entry) and "version" in entry
    )


def _read(path: Path, text: str) -> _Lock:
    if len(text) > _LIMIT_BYTES:
        raise TracelockError(Problem(str(path), f"is larger than {_LIMIT_BYTES >> 20} MiB"))
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise TracelockError(
            Problem(str(path), f"is not TOML: {shortened(error, 200)}", "make it anew: uv lock")
        ) from None
    if document.get("version") != _VERSION:
        found = shortened(document.get("version"))
        raise TracelockError(Problem(str(path), f"is of lock format {found}, expected {_VERSION}"))
    entries: dict[str, list[dict[str, Any]]] = {}
    problems = []
    for number, entry in enumerate(_tables(document.get("package")), 1):
        if isinstance(entry.get("name"), str) and isinstance(entry.get("source"), dict):
            entries.setdefault(entry["name"], []).append(entry)
        else:
            problems.append(Problem(str(path), f"package {number} has no name or no source", "make it anew: uv lock"))
    if problems:
        raise TracelockError(problems)
    roots = tuple(e for found in entries.values() for e in found if _is_root(e))
    if not roots:
        raise TracelockError(Problem(str(path), "names no project (a package whose source is this folder)"))
    lowest = re.search(r"(?:>=|==|~=)\s*(\d+(?:\.\d+)*)", str(document.get("requires-python", "")))
    return _Lock(path, entries, roots, _full(lowest[1]) if lowest else None)


def _full(version: str) -> str:
    return version if version.count(".") > 1 else f"{version}.0"


def _tables(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _is_root(entry: Mapping[str, Any]) -> bool:
    return any(entry["source"].get(kind) is not None for kind in ("virtual", "editable"))


def _local(entry: Mapping[str, Any]) -> bool:
    return any(kind in entry["source"] for kind in _LOCAL)


def _installed(lock: _Lock, platform: str, python: str | None) -> Iterator[dict[str, Any]]:
    """Yield the packages that the projects of the lock bring on a platform, those of development among them."""
    waiting = [(entry, frozenset[str]()) for entry in lock.roots]
    for root in lock.roots:
        groups = root.get("dev-dependencies")
        for group in groups.values() if isinstance(groups, dict) else ():
            waiting += _followed(lock, _tables(group), platform, python)
    seen: set[tuple[int, frozenset[str]]] = set()
    given: set[int] = set()
    while waiting:
        entry, extras = waiting.pop()
        if (id(entry), extras) in seen:
            continue
        seen.add((id(entry), extras))
        if not _is_root(entry) and id(entry) not in given:
            given.add(id(entry))
            yield entry
        optional = entry.get("optional-dependencies")
        tables = _tables(entry.get("dependencies"))
        for extra in extras if isinstance(optional, dict) else ():
            tables += _tables(optional.get(extra))  # type: ignore[union-attr]
        waiting += _followed(lock, tables, platform, python)


def _followed(
    lock: _Lock, tables: Iterable[Mapping[str, Any]], platform: str, python: str | None
) -> list[tuple[dict[str, Any], frozenset[str]]]:
    """Return the packages of some dependencies that are needed on a platform, with their extras."""
    found = []
    for table in tables:
        marker = table.get("marker")
        if isinstance(marker, str) and marker_holds(marker, platform, python) is False:
            continue
        extras = table.get("extra")
        wanted = frozenset(str(extra) for extra in extras) if isinstance(extras, list) else frozenset[str]()
        entry = _chosen(lock, table, platform, python)
        if entry is not None:
            found.append((entry, wanted))
    return found


def _chosen(lock: _Lock, table: Mapping[str, Any], platform: str, python: str | None) -> dict[str, Any] | None:
    """Return the entry that a dependency means: by version and source where it states them, else by platform."""
    candidates = lock.entries.get(str(table.get("name")), [])
    for key in ("version", "source"):
        if key in table:
            candidates = [entry for entry in candidates if entry.get(key) == table[key]]
    fitting = [entry for entry in candidates if _fits(entry, platform, python)]
    return next(iter(fitting or candidates), None)


def _fits(entry: Mapping[str, Any], platform: str, python: str | None) -> bool:
    markers = entry.get("resolution-markers")
    if not isinstance(markers, list):
        return True
    return any(marker_holds(str(marker), platform, python) is not False for marker in markers)


def _hashes(entry: Mapping[str, Any]) -> tuple[str, ...]:
    archives = [*_tables(entry.get("wheels")), *([entry["sdist"]] if isinstance(entry.get("sdist"), dict) else [])]
    found = (_SHA.fullmatch(str(archive.get("hash"))) for archive in archives)
    return tuple(match[1] for match in found if match)


def _package(entry: Mapping[str, Any]) -> Package:
    source, hashes = entry["source"], _hashes(entry)
    direct: dict[str, Any] | None = None
    if "git" in source:
        url, _, commit = str(source["git"]).partition("#")
        direct = {"url": without_login(url.partition("?")[0]), "vcs_info": {"vcs": "git", "commit_id": commit or None}}
    elif "url" in source:
        direct = {"url": without_login(str(source["url"])), "archive_info": {}}
    return Package(
        name=pip_name(entry["name"]),
        version=str(entry["version"]) if "version" in entry else None,
        manager="pip",
        sha256=hashes[0] if len(hashes) == 1 else None,
        direct_url=direct,
        unreproducible="a folder of its writer's machine" if _local(entry) else None,
    )
