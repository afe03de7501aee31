"""What differs between two environments, what decides the speed of a training job first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from tracelock.envs.manifest import Manifest
from tracelock.envs.package import Package, pip_name, speed_rank, speed_tier
from tracelock.envs.versions import satisfies

What = Literal["added", "removed", "version", "build", "hash", "source", "manager", "option"]

# One program under two names.
_ALIASES = {"pytorch": "torch", "matplotlib-base": "matplotlib", "pytorch-triton": "triton", "torchtriton": "triton"}
_ABSENT_FACTS = ("schema", "unknown", "host", "git", "variables")


@dataclass(frozen=True)
class Change:
    """One difference between two environments, the first being `before`.

    Parameters
    ----------
    tier
        What the package means for speed: torch, cuda, cudnn, mkl, openmp, data, python or other.
    """

    what: What
    name: str
    manager: str
    tier: str
    before: str | None
    after: str | None

    def to_json(self) -> dict[str, Any]:
        """Return all fields."""
        return asdict(self)


def compare_manifests(first: Manifest, second: Manifest) -> tuple[Change, ...]:
    """Return what must be done to the first environment to get the second, ordered by what matters to speed.

    A field that only one side tells is no difference: a pin has hashes, an exported list has none; a range of
    versions differs only from a version outside it.
    """
    before, after = {p.key: p for p in first.packages}, {p.key: p for p in second.packages}
    gone = {key: before[key] for key in before.keys() - after.keys()}
    new = {key: after[key] for key in after.keys() - before.keys()}
    changes = list(_moved(gone, new))
    changes += [_change("removed", package, _label(package), None) for package in gone.values()]
    changes += [_change("added", package, None, _label(package)) for package in new.values()]
    for key in before.keys() & after.keys():
        changes += _changed(before[key], after[key])
    changes += _python(first, second)
    changes += _options(first, second)
    return tuple(sorted(changes, key=lambda change: (speed_rank(change.name), change.manager, change.what)))


def _change(what: What, package: Package, before: str | None, after: str | None) -> Change:
    return Change(what, package.name, package.manager, speed_tier(package.name), before, after)


def _label(package: Package) -> str:
    if source := _source(package):
        return source
    stated = package.version or ("any version" if package.constraint == "*" else package.constraint)
    return " ".join(filter(None, (stated or "version not stated", package.build)))


def _moved(gone: dict[tuple[str, str], Package], new: dict[tuple[str, str], Package]) -> Iterator[Change]:
    """Yield packages that one side has from conda and the other from pip, and take them out of both."""
    by_name = {_common_name(package): package for package in new.values()}
    for key, package in list(gone.items()):
        other = by_name.get(_common_name(package))
        if other is not None and other.manager != package.manager:
            del gone[key], new[other.key]
            labels = (f"{p.manager}: {p.name} {_label(p)}" for p in (package, other))
            yield _change("manager", package, *labels)


def _common_name(package: Package) -> str:
    name = pip_name(package.name)
    return _ALIASES.get(name, name)


def _changed(before: Package, after: Package) -> list[Change]:
    """Return the first field that differs: later ones follow from it."""
    if _source(before) != _source(after):
        return [_change("source", before, _label(before), _label(after))]
    if not _same_version(before, after):
        return [_change("version", before, _label(before), _label(after))]
    if before.build and after.build and not _same_build(before.build, after.build):
        return [_change("build", before, _label(before), _label(after))]
    for left, right in ((before.sha256, after.sha256), (before.md5, after.md5), _files(before, after)):
        if left and right and left.lower() != right.lower():
            return [_change("hash", before, left, right)]
    return []


def _files(before: Package, after: Package) -> tuple[str | None, str | None]:
    # The files of a local installation hold the paths of its machine.
    local = before.unreproducible or after.unreproducible
    return (None, None) if local else (before.files_sha256, after.files_sha256)


def _source(package: Package) -> str | None:
    """Return the repository and commit, or the address, that a pip package came from; ``None`` for an index."""
    direct: Mapping[str, Any] = package.direct_url or {}
    url = str(direct.get("url", "")).removesuffix(".git").removesuffix("/")
    if vcs := direct.get("vcs_info"):
        return f"{vcs['vcs']}+{url}@{vcs.get('commit_id') or '?'}"
    return url or None


def _same_version(before: Package, after: Package) -> bool:
    if before.version is not None and after.version is not None:
        return before.version.lower() == after.version.lower()
    if before.constraint and after.constraint:
        return before.constraint == after.constraint
    version = before.version or after.version
    constraint = before.constraint or after.constraint
    if version is None or constraint is None:
        return True
    try:
        return satisfies(version, constraint)
    except ValueError:
        return version == constraint


def _same_build(before: str, after: str) -> bool:
    pattern, build = (after, before) if "*" in after else (before, after)
    return fnmatchcase(build, pattern) if "*" in pattern else before == after


def _python(first: Manifest, second: Manifest) -> Iterator[Change]:
    """Yield the change of an interpreter that is no package: a venv's."""
    before, after = _python_version(first), _python_version(second)
    is_package = any(p.key == ("conda", "python") for p in (*first.packages, *second.packages))
    if before and after and before != after and not is_package:
        yield Change("version", "python", "venv", "python", before, after)


def _options(first: Manifest, second: Manifest) -> Iterator[Change]:
    """Yield what only one side tells pip beside the packages: another index, ``--pre``, a file of constraints."""
    both = set(first.options) & set(second.options)
    for option in first.options:
        if option not in both:
            yield Change("option", option, "pip", "other", option, None)
    for option in second.options:
        if option not in both:
            yield Change("option", option, "pip", "other", None, option)


def _python_version(manifest: Manifest) -> str | None:
    package = next((p for p in manifest.packages if p.key == ("conda", "python")), None)
    return package.version if package else manifest.python


def compare_machines(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the facts in which two documents ``tracelock/machine/1`` differ: (key path, first, second)."""
    before, after = dict(_flat(first)), dict(_flat(second))
    return [
        (key, str(before.get(key)), str(after.get(key)))
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, Mapping):
        items = ((key, inner) for key, inner in value.items() if path or key not in _ABSENT_FACTS)
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        yield path, value
    for key, inner in items:
        yield from _flat(inner, f"{path}.{key}" if path else str(key))
