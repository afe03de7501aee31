"""The files of installed packages: unmodified, all there, and none that no package brought.

Standard library only, Python 3.10 syntax.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from importlib.metadata import Distribution
from pathlib import Path, PurePosixPath

from tracelock.envs.difference import REBUILD, Difference
from tracelock.envs.installed import Installed, pip_metadata, record_rows
from tracelock.io import file_digest

_METADATA = {"METADATA", "PKG-INFO", "RECORD", "INSTALLER"}
_SHOWN = 10  # of one package; further files are counted


@dataclass
class _File:
    """A file that packages brought, and the digests it may have: two packages may have brought the same path."""

    package: str
    manager: str
    digests: set[str] = field(default_factory=set)
    link: bool = False
    # A file whose digest nobody recorded can only be missing.
    unknown: bool = False


def check_metadata(installed: Installed) -> list[Difference]:
    """Return the conda packages whose Python metadata was replaced: pip installed another build over them.

    Quick: reads only the small files of ``*.dist-info``.
    """
    files = _conda_files(installed, only_metadata=True)
    changed = {file.package for path, file in files.items() if _fault(installed.prefix / path, file)}
    return [
        Difference("reinstalled", name, "as conda installed it", "replaced afterwards", hint=f"pip? {REBUILD}")
        for name in sorted(changed)
    ]


def check_files(installed: Installed) -> list[Difference]:
    """Return every file that is missing, modified, or belongs to no package.

    Conda's files are compared with ``paths.json`` (the digest after the prefix was written into them, where it was),
    pip's with their ``RECORD``. Byte code is left out: Python writes it anew.
    """
    files = _conda_files(installed) | _pip_files(installed)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        faults = list(pool.map(lambda item: _fault(installed.prefix / item[0], item[1]), files.items()))
    found = [
        Difference("file", f"{file.package}: {path}", "as packaged", fault, file.manager, hint=REBUILD)
        for (path, file), fault in zip(files.items(), faults, strict=True)
        if fault
    ]
    if installed.kind == "conda":
        found += [
            Difference("unowned", path, None, "belongs to no package", hint=f"copied there by hand? {REBUILD}")
            for path in _unowned(installed, files)
        ]
    return _shortened(found)


def _conda_files(installed: Installed, only_metadata: bool = False) -> dict[str, _File]:
    files: dict[str, _File] = {}
    for record in installed.records.values():
        for entry in (record.get("paths_data") or {}).get("paths", ()):
            path = str(entry["_path"])
            kind = str(entry.get("path_type") or "hardlink")
            if kind in ("directory", "pyc_file") or path.endswith(".pyc") or (only_metadata and not _is_metadata(path)):
                continue
            file = files.setdefault(path, _File(record["name"], "conda", link=kind == "softlink"))
            sha = entry.get("sha256_in_prefix") or (None if entry.get("prefix_placeholder") else entry.get("sha256"))
            file.digests |= {sha} if sha else set()
            file.unknown |= not sha
    return files


def _is_metadata(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return len(parts) > 1 and parts[-1] in _METADATA and parts[-2].endswith((".dist-info", ".egg-info"))


def _pip_files(installed: Installed) -> dict[str, _File]:
    files: dict[str, _File] = {}
    for folder, path, name in pip_metadata(installed):
        for relative, sha in record_rows(Distribution.at(path).read_text("RECORD")):
            absolute = Path(os.path.normpath(folder / relative))
            if not relative.endswith(".pyc") and absolute.is_relative_to(installed.prefix):
                file = files.setdefault(absolute.relative_to(installed.prefix).as_posix(), _File(name, "pip"))
                digest = _hexadecimal(sha)
                file.digests |= {digest} if digest else set()
                file.unknown |= digest is None
    return files


def _hexadecimal(sha: str) -> str | None:
    """Return the digest of a row of ``RECORD`` (``sha256=`` and base64 without padding) in hexadecimal."""
    algorithm, _, value = sha.partition("=")
    if algorithm != "sha256":
        return None
    try:
        return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)).hex()
    except (binascii.Error, ValueError):
        return None


def _fault(path: Path, file: _File) -> str | None:
    """Return what is wrong with a file, or ``None``."""
    if not os.path.lexists(path):
        return "missing"
    if file.link or file.unknown or not file.digests:
        return None
    try:
        return None if file_digest(path) in file.digests else "modified"
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _unowned(installed: Installed, files: Iterable[str]) -> Iterator[str]:
    """Yield files in the prefix's site-packages that no package brought, one for each folder that is foreign whole."""
    known = set(files)
    folders = {str(parent) for path in known for parent in PurePosixPath(path).parents}
    for site in installed.site_packages:
        for folder, inner, names in os.walk(site):
            relative = Path(folder).relative_to(installed.prefix).as_posix()
            foreign = [name for name in inner if f"{relative}/{name}" not in folders and name != "__pycache__"]
            inner[:] = sorted(set(inner) - set(foreign) - {"__pycache__"})
            yield from (f"{relative}/{name}/" for name in sorted(foreign))
            # Installers add files of their own to the metadata of what they install; nobody imports them.
            listed = [] if relative.endswith(".dist-info") else sorted(names)
            loose = (f"{relative}/{name}" for name in listed if not name.endswith(".pyc"))
            yield from (path for path in loose if path not in known)


def _shortened(found: list[Difference]) -> list[Difference]:
    """Return the first differences of each package and, in place of the rest, their number."""
    groups: dict[tuple[str, str], list[Difference]] = defaultdict(list)
    for difference in found:
        groups[difference.kind, difference.name.partition(":")[0] if difference.kind == "file" else "…"].append(
            difference
        )
    kept: list[Difference] = []
    for (_, name), group in groups.items():
        kept += group[:_SHOWN]
        if len(group) > _SHOWN:
            kept.append(replace(group[0], name=f"{name}: …", found=f"{len(group) - _SHOWN} more"))
    return kept
