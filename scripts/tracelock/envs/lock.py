"""conda-lock's lock files (format version 1), read strictly.

The format is that of https://schemas.conda.org/conda-lock-v1.schema.json; beyond it every conda package must carry md5
and sha256, and its address must agree with its name, version and platform.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

import msgspec
import yaml

from tracelock.envs.package import Package, split_url
from tracelock.envs.spec import read_text
from tracelock.errors import Problem, TracelockError
from tracelock.safe_yaml import compose, construct, line_of

RELOCK = "make it anew: tracelock env lock"
_ARCHIVE = re.compile(r"(?P<name>.+)-(?P<version>[^-]+)-(?P<build>[^-]+)\.(?:conda|tar\.bz2)")
_HEX = {"md5": re.compile(r"[0-9a-f]{32}"), "sha256": re.compile(r"[0-9a-f]{64}")}


class Hashes(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Digests of a package's archive, hexadecimal."""

    md5: str | None = None
    sha256: str | None = None


class Source(msgspec.Struct, forbid_unknown_fields=True):
    """Where a pip package that is no index's came from."""

    type: Literal["url"]
    url: str


class LockedPackage(msgspec.Struct, forbid_unknown_fields=True):
    """One package of a lock; `dependencies` maps a name to a version range."""

    name: str
    version: str
    manager: Literal["conda", "pip"]
    platform: str
    url: str
    hash: Hashes
    optional: bool
    dependencies: dict[str, str] = {}
    category: str = "main"
    build: str | None = None
    source: Source | None = None

    @property
    def archive(self) -> str:
        """Return the archive's file name."""
        return unquote(self.url.rpartition("/")[2])

    @property
    def build_string(self) -> str | None:
        """Return conda's build string, which this format keeps in the address alone."""
        match = _ARCHIVE.fullmatch(self.archive)
        return match["build"] if match else None

    def to_package(self) -> Package:
        """Return the package as the check of an environment compares it."""
        conda = self.manager == "conda"
        base, _, subdir = self.url.rpartition("/")[0].rpartition("/")
        return Package(
            name=self.name,
            version=self.version,
            manager=self.manager,
            build=self.build_string if conda else None,
            channel=base if conda else None,
            subdir=subdir if conda else None,
            url=self.url,
            md5=self.hash.md5,
            sha256=self.hash.sha256,
        )


class LockedChannel(msgspec.Struct, forbid_unknown_fields=True):
    """A channel that was solved over; variables in its address keep passwords out of the lock."""

    url: str
    used_env_vars: list[str] = []


class Metadata(msgspec.Struct, forbid_unknown_fields=True):
    """What the lock was made from, and when."""

    content_hash: dict[str, str]
    channels: list[LockedChannel]
    platforms: list[str]
    sources: list[str]
    time_metadata: dict[str, Any] | None = None
    git_metadata: dict[str, Any] | None = None
    inputs_metadata: dict[str, Any] | None = None
    custom_metadata: dict[str, Any] | None = None


@dataclass(frozen=True)
class Lock:
    """A lock that was read without a problem.

    Parameters
    ----------
    lines
        The line (from 1) on which each of `packages` begins.
    """

    path: Path
    metadata: Metadata
    packages: tuple[LockedPackage, ...]
    lines: tuple[int, ...]

    def for_platform(self, platform: str) -> tuple[LockedPackage, ...]:
        """Return the packages of one platform, by name.

        Raises
        ------
        TracelockError
            If the lock is for other platforms.
        """
        if platform not in self.metadata.platforms:
            others = ", ".join(self.metadata.platforms) or "no platform"
            hint = f"lock it for this one: add {platform} to platforms: in the yaml, then tracelock env lock"
            raise TracelockError(Problem(str(self.path), f"is a lock for {others}, not for {platform}", hint))
        return tuple(sorted((p for p in self.packages if p.platform == platform), key=lambda p: (p.manager, p.name)))

    def line(self, package: LockedPackage) -> int:
        """Return the line on which a package's entry begins."""
        return self.lines[self.packages.index(package)]


def read_lock(path: Path) -> Lock:
    """Read a lock and check it.

    Raises
    ------
    TracelockError
        With everything that is wrong with it, each with its line.
    """
    root, document = _load(path)
    _check_top(path, document)
    problems: list[Problem] = []
    metadata = _convert(document["metadata"], Metadata, f"{path}: metadata", problems)
    nodes = _package_nodes(root)
    packages = [
        _convert(value, LockedPackage, f"{path}:{line_of(node)}", problems)
        for value, node in zip(document["package"], nodes, strict=True)
    ]
    if packages and packages[-1] is None:
        last = problems.pop()
        problems.append(Problem(last.where, f"the file ends within a package, it is cut off: {last.what}", last.hint))
    if problems or metadata is None:
        raise TracelockError(problems)
    lock = Lock(path, metadata, tuple(p for p in packages if p), tuple(line_of(node) for node in nodes))
    if problems := list(_faults(lock)):
        raise TracelockError(problems)
    return lock


def _load(path: Path) -> tuple[yaml.Node, dict[str, Any]]:
    try:
        root = compose(read_text(path), path)
        document = construct(root, path)
    except TracelockError as error:
        hint = f"the file is cut off or damaged; {RELOCK}, or take it from version control again"
        raise TracelockError([Problem(p.where, p.what, p.hint or hint) for p in error.problems]) from None
    if root is None or not isinstance(document, dict):
        raise TracelockError(Problem(str(path), "is empty or no conda-lock file", RELOCK))
    return root, document


def _check_top(path: Path, document: Mapping[str, Any]) -> None:
    version = document.get("version")
    if version != 1:
        raise TracelockError(Problem(str(path), f"is of lock format {version!r}, expected 1", RELOCK))
    for key, kind in (("metadata", dict), ("package", list)):
        if not isinstance(document.get(key), kind):
            what = f"has no '{key}': the file is cut off or no conda-lock file"
            raise TracelockError(Problem(str(path), what, f"{RELOCK}, or take it from version control again"))


def _package_nodes(root: yaml.Node) -> list[yaml.Node]:
    assert isinstance(root, yaml.MappingNode)  # noqa: S101 (its content was checked before)
    return next(list(value.value) for key, value in root.value if key.value == "package")


def _convert(value: Any, kind: type[Any], where: str, problems: list[Problem]) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        name = value.get("name") if isinstance(value, dict) else None
        what = str(error).replace("`", "'")
        problems.append(Problem(where, f"{name}: {what}" if isinstance(name, str) else what, RELOCK))
        return None


def _faults(lock: Lock) -> Iterator[Problem]:
    """Yield what the format allows and a lock that can be trusted does not have."""
    seen: dict[tuple[str, str, str], int] = {}
    for package, line in zip(lock.packages, lock.lines, strict=True):
        where = f"{lock.path}:{line}"
        key = (package.manager, package.name, package.platform)
        if key in seen:
            yield Problem(where, f"{package.name} is locked twice, first on line {seen[key]}", RELOCK)
        seen[key] = line
        for what in _package_faults(package):
            yield Problem(where, f"{package.name}: {what}", RELOCK)
        if package.platform not in lock.metadata.platforms:
            yield Problem(where, f"{package.name}: platform {package.platform} is not one of the lock's", RELOCK)


def _package_faults(package: LockedPackage) -> Iterator[str]:
    wanted = ("md5", "sha256") if package.manager == "conda" else ("sha256",)
    for algorithm in wanted:
        value = getattr(package.hash, algorithm)
        if value is None:
            yield f"has no {algorithm}"
        elif not _HEX[algorithm].fullmatch(value):
            yield f"'{value}' is no {algorithm}"
    if package.manager == "conda":
        yield from _address_faults(package)


def _address_faults(package: LockedPackage) -> Iterator[str]:
    match = _ARCHIVE.fullmatch(package.archive)
    if split_url(package.url).scheme not in ("http", "https", "file") or not match:
        yield f"'{package.url}' is no address of a conda package"
        return
    if (match["name"], match["version"]) != (package.name, package.version):
        yield f"version {package.version}, but the address is that of {match['name']} {match['version']}"
    subdir = package.url.split("/")[-2]
    if subdir not in (package.platform, "noarch"):
        yield f"is for {package.platform}, but the address is for {subdir}"
