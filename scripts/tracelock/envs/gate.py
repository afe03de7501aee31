"""The gate between an environment and its first run: what is installed equals what was locked, or no result carries
its name. Standard library only, Python 3.10 syntax: it runs inside the environment that it checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tracelock.envs.difference import REBUILD, Difference, Kind, hints
from tracelock.envs.files import check_files, check_metadata
from tracelock.envs.installed import Installed
from tracelock.envs.package import Package, completed, speed_rank, speed_tier
from tracelock.envs.requirements import Requirement, same_version
from tracelock.errors import Problem
from tracelock.io import file_digest, schema


@dataclass(frozen=True)
class Check:
    """The gate's answer.

    Parameters
    ----------
    ok
        Whether the environment equals its lock; ``None`` where it has no lock.
    unlocked
        Whether results made in it must be marked: no lock, a difference, or a torch that the lock does not name.
    unknown
        What could not be compared, each with the reason.
    """

    ok: bool | None
    unlocked: bool
    differences: tuple[Difference, ...]
    digest: str
    unknown: Mapping[str, str]

    def to_json(self, environment: str) -> dict[str, Any]:
        """Return the document ``tracelock/envcheck/1``."""
        return {
            "schema": schema("envcheck"),
            "environment": environment,
            "ok": self.ok,
            "unlocked": self.unlocked,
            "differences": [difference.to_json() for difference in self.differences],
            "digest": self.digest,
            "unknown": dict(self.unknown),
        }


def unlocked_check(installed: Installed) -> Check:
    """Return the answer for an environment that has no lock: nothing is known to be as it should be."""
    return Check(None, True, (), installed.digest, {"ok": "no lock was given for this environment"})


def check_packages(installed: Installed, locked: Sequence[Package], deep: bool = False) -> Check:
    """Compare a conda prefix with the packages of its lock: nothing more, nothing less.

    Parameters
    ----------
    locked
        Every package of the lock for this platform, conda's and pip's.
    deep
        Compare every file with its package's digest, not only Python's metadata.
    """
    found = [*_compare(installed.packages, locked), *_damaged(installed)]
    found += check_files(installed) if deep else check_metadata(installed)
    ok = not any(difference.fatal for difference in found)
    if not ok:
        found += fallback_signs(installed.prefix)
    digest = replace(installed, packages=completed(installed.packages, locked)).digest
    without = sorted(p.name for p in installed.conda if p.sha256 is None and p.md5 is None)
    unknown = {"hash": f"not in the records of {', '.join(without)}"} if without else {}
    return Check(ok, not ok, _ordered(found), digest, unknown)


def _compare(installed: Sequence[Package], locked: Sequence[Package]) -> list[Difference]:
    have, want = {p.key: p for p in installed}, {p.key: p for p in locked}
    found = [_missing(want[key]) for key in want.keys() - have.keys()]
    found += [_extra(have[key]) for key in have.keys() - want.keys()]
    for key in want.keys() & have.keys():
        found += _changed(want[key], have[key])
    return found


def _missing(package: Package) -> Difference:
    return Difference("missing", package.name, _label(package), None, package.manager, hint=REBUILD)


def _extra(package: Package) -> Difference:
    by = package.installer or package.manager
    hint = f"{by} put it there after the build; {REBUILD}" if package.manager == "pip" else REBUILD
    return Difference("extra", package.name, None, _label(package), package.manager, hint=hint)


def _label(package: Package) -> str:
    return f"{package.version} {package.build}" if package.build else str(package.version)


def _changed(want: Package, have: Package) -> list[Difference]:
    """Return the first field in which a package differs: a later one follows from it."""
    pairs: list[tuple[Kind, str | None, str | None]] = [
        ("version", want.version, have.version),
        ("build", want.build, have.build),
        ("hash", want.sha256, have.sha256),
        ("hash", want.md5, have.md5),
    ]
    for kind, expected, found in pairs:
        # A hash that one side does not have says nothing; a version always counts.
        if expected and found and not _equal(kind, want.manager, expected, found):
            return [Difference(kind, want.name, expected, found, want.manager, hint=REBUILD)]
    return []


def _equal(kind: Kind, manager: str, expected: str, found: str) -> bool:
    if kind == "version" and manager == "pip":
        return same_version(expected, found)
    return expected.lower() == found.lower() if kind == "hash" else expected == found


def _damaged(installed: Installed) -> list[Difference]:
    return [Difference("record", Path(p.where).name, "a whole record", p.what, hint=REBUILD) for p in installed.damaged]


def fallback_signs(prefix: Path) -> list[Difference]:
    """Return Snakemake's trace of having solved the loose yaml because the pin file could not be installed.

    It copies the file that it builds from to ``<prefix>.pin.txt``, and to ``<prefix>.yaml`` when it falls back.
    """
    pin, loose = prefix.with_name(f"{prefix.name}.pin.txt"), prefix.with_name(f"{prefix.name}.yaml")
    if not (pin.is_file() and loose.is_file() and loose.stat().st_mtime >= pin.stat().st_mtime):
        return []
    hint = "Snakemake's log says why the pin file could not be installed; mend that, then remove the environment"
    return [Difference("fallback", prefix.name, "built from the pin file", "solved from the yaml", hint=hint)]


def check_requirements(
    installed: Installed, required: Mapping[str, Requirement], optional: Mapping[str, Requirement], deep: bool = False
) -> Check:
    """Compare a venv with pip's requirement locks.

    What the locks do not name is recorded and not fatal: a venv is its owner's. A torch that they do not name marks
    all results.

    Parameters
    ----------
    optional
        Requirements that need not be installed, but must have the locked version if they are.
    """
    have = {package.name: package for package in installed.pip}
    found = [_missing_requirement(required[name]) for name in required.keys() - have.keys()]
    named = {**optional, **required}
    found += [
        Difference(
            "version", name, named[name].version, have[name].version, "pip", hint=f"pinned in {named[name].where}"
        )
        for name in named.keys() & have.keys()
        if not same_version(named[name].version, have[name].version)
    ]
    found += [
        Difference("extra", name, None, have[name].version, "pip", fatal=False) for name in have.keys() - named.keys()
    ]
    found += check_files(installed) if deep else []
    ok = not any(difference.fatal for difference in found)
    foreign_torch = any(d.kind == "extra" and speed_tier(d.name) == "torch" for d in found)
    unknown = {"hash": "pip does not record the hash of an archive from an index; it compares them when it installs"}
    return Check(ok, not ok or foreign_torch, _ordered(found), installed.digest, unknown)


def _missing_requirement(requirement: Requirement) -> Difference:
    hint = f"pinned in {requirement.where}; make install"
    return Difference("missing", requirement.name, requirement.version, None, "pip", hint=hint)


def _ordered(found: Iterable[Difference]) -> tuple[Difference, ...]:
    return tuple(sorted(found, key=lambda d: (not d.fatal, d.kind != "fallback", speed_rank(d.name), d.kind)))


def file_identity(path: Path) -> dict[str, str]:
    """Return name and SHA-256 of a lock, for the record of what was compared (``pixi.lock@cuda`` is one in a file)."""
    file = path if path.exists() else path.with_name(path.name.rpartition("@")[0])
    return {"file": path.name, "sha256": file_digest(file)}


def gate_problem(environment: str, check: Check) -> Problem:
    """Return the one line that stops a study, with the number of differences and the first remedies."""
    count = sum(difference.fatal for difference in check.differences)
    what = f"is not what its lock says: {count} difference{'s' if count != 1 else ''}"
    hint = "; ".join([*hints(check.differences)[:3], "or allow_unlocked: true, which marks every result"])
    return Problem(environment, what, hint)
