"""What of somebody's ``environment.yml`` can be built again, said before it is tried, and what came of it.

An export names versions, perhaps builds, never hashes. So the best that can be said is "the same versions and builds";
and much of it is weaker: ranges, branches of repositories, folders of its writer's machine.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tracelock.envs.clients import Client, find_client
from tracelock.envs.diff import Change, compare_manifests
from tracelock.envs.exported import Exported, read_exported
from tracelock.envs.installed import Installed, read_installed
from tracelock.envs.manifest import Manifest, decode, this_platform
from tracelock.envs.mirrors import Mirrors, mirrors_from_environment
from tracelock.envs.package import Package
from tracelock.envs.restore import check_name, check_place, run_program
from tracelock.envs.snapshot import pip_requirement
from tracelock.errors import EXIT_FAILED, Problem, TracelockError

Hope = Literal["exact", "version", "range", "moving", "lost"]

MEANING: dict[Hope, str] = {
    "exact": "version and build are named: the same archive, while its channel keeps it (no hash compares it)",
    "version": "the version is named, the build is not: the release, perhaps another build of it",
    "range": "only a range: whatever is newest in it today",
    "moving": "a branch, or an archive without a hash: what it holds today",
    "lost": "cannot be built elsewhere; it is left out",
}
# Packages that exist for one system alone tell for which one an export was written.
_ONLY: dict[str, re.Pattern[str]] = {
    "win": re.compile(
        r"vc|vs20\d\d_\w+|vc14_runtime|ucrt|wincertstore|m2w64-.*|msys2-.*|pywin32|pywinpty|console_shortcut"
    ),
    "osx": re.compile(r"appnope|libcxx|ld64.*|cctools.*|pyobjc-.*"),
    "linux": re.compile(r"_libgcc_mutex|ld_impl_linux-.*|libgcc-ng|libgcc|.*sysroot_linux-.*|jeepney"),
}
_SYSTEMS = {"win": "Windows", "osx": "macOS", "linux": "Linux"}


@dataclass(frozen=True)
class Chance:
    """What may be hoped for one package of an export."""

    package: Package
    hope: Hope
    why: str = ""


@dataclass(frozen=True)
class Rebuilt:
    """What came of an export.

    Parameters
    ----------
    chances
        What could be hoped, package by package.
    changes
        Where what is installed is not what was asked for, or more.
    """

    prefix: Path
    digest: str
    chances: tuple[Chance, ...]
    changes: tuple[Change, ...]
    warnings: tuple[Problem, ...]


def read_export(path: Path) -> Exported:
    """Read an ``environment.yml`` as people have it, for this machine.

    Raises
    ------
    TracelockError
        If it cannot be read or is none.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TracelockError(Problem(str(path), f"cannot be read: {error.strerror}")) from None
    text, warnings = decode(path, data)
    exported = read_exported(path, text, this_platform())
    return replace(exported, warnings=(*warnings, *exported.warnings))


def chances(exported: Exported) -> tuple[Chance, ...]:
    """Return what may be hoped for each package, the least first."""
    here = this_platform().partition("-")[0]
    conda = [package.name for package in exported.packages if package.manager == "conda"]
    written_for = [system for system, only in _ONLY.items() if any(map(only.fullmatch, conda))]
    foreign = written_for[0] if written_for and here not in written_for else None
    found = [_chance(package, here, foreign) for package in exported.packages]
    order = list(reversed(MEANING))
    return tuple(sorted(found, key=lambda chance: (order.index(chance.hope), chance.package.key)))


def _chance(package: Package, here: str, foreign: str | None) -> Chance:
    """Return what may be hoped for a package on the system `here`, the export being of `foreign`."""
    for system, only in _ONLY.items():
        if system != here and package.manager == "conda" and only.fullmatch(package.name):
            return Chance(package, "lost", f"exists for {_SYSTEMS[system]} alone")
    if package.unreproducible:
        return Chance(package, "lost", package.unreproducible)
    if package.manager == "pip":
        return _pip_chance(package)
    # Builds that begin so are of packages for all systems.
    if foreign and package.build and not package.build.startswith("pyh"):
        return Chance(replace(package, build=None), "version", f"its build is one for {_SYSTEMS[foreign]}")
    exact = package.version and package.build and "*" not in package.build
    return Chance(package, "exact" if exact else "version" if package.version else "range")


def _pip_chance(package: Package) -> Chance:
    direct = package.direct_url
    if direct is None:
        if package.version:
            return Chance(package, "version")
        return Chance(package, "range")
    if vcs := direct.get("vcs_info"):
        commit = str(vcs.get("commit_id") or "")
        if re.fullmatch(r"[0-9a-f]{40}", commit):
            return Chance(package, "version", f"commit {commit[:12]}, while its repository keeps it")
        return Chance(package, "moving", f"branch or tag {commit}" if commit else "the head of a repository")
    return Chance(package, "version" if package.sha256 else "moving", str(direct.get("url")))


def account(found: Sequence[Chance]) -> str:
    """Return how many packages may be hoped for and how, and those that will not come back the same."""
    counts = Counter(chance.hope for chance in found)
    lines = [f"{counts[hope]:>5}  {hope:<8} {meaning}" for hope, meaning in MEANING.items() if counts[hope]]
    for hope in ("lost", "moving"):
        lines += [f"       {hope}: {c.package.name}: {c.why}" for c in found if c.hope == hope]
    if foreign := next((c.why for c in found if c.why.startswith("its build is")), None):
        lines.append(f"       written on another system: {foreign.replace('its build is one', 'its builds are')}")
    if any(c.package.manager == "pip" and c.package.version and not c.package.direct_url for c in found):
        lines.append(
            "       conda env export writes name==version also for what pip took from a repository or a folder"
        )
    return "\n".join(lines)


def rebuild(path: Path, prefix: Path, conda: str | None = None) -> Rebuilt:
    """Build an environment from somebody's ``environment.yml``; `prefix` is whole or not there.

    Raises
    ------
    TracelockError
        If the file is none, something stands at `prefix`, or the build fails or lacks a version that was named.
    """
    exported = read_export(path)
    hopes = chances(exported)
    check_place(prefix)
    client = find_client(conda)
    check_name(client, prefix)
    try:
        with tempfile.TemporaryDirectory() as folder:
            listed = Path(folder) / "environment.yml"
            listed.write_text(environment_text(exported, hopes), encoding="utf-8")
            run_program(_command(client, listed, prefix), f"{client.kind} could not build {prefix} from {path}")
        installed = read_installed(prefix)
        changes = _compared(path, hopes, installed)
    except BaseException:
        shutil.rmtree(prefix, ignore_errors=True)
        raise
    return Rebuilt(prefix, installed.digest, hopes, changes, exported.warnings)


def _command(client: Client, listed: Path, prefix: Path) -> list[str]:
    if client.kind == "micromamba":
        return [str(client.path), "create", "--yes", "--quiet", "--file", str(listed), "--prefix", str(prefix)]
    return [str(client.path), "env", "create", "--quiet", "--file", str(listed), "--prefix", str(prefix)]


def environment_text(exported: Exported, hopes: Sequence[Chance]) -> str:
    """Return the export as conda takes it: UTF-8, without ``prefix:``, each package once, without what is lost."""
    mirrors = mirrors_from_environment()
    channels = [mirrors.channel(name) for name in exported.channels if name != "nodefaults"]
    wanted = [chance.package for chance in hopes if chance.hope != "lost"]
    conda = sorted((p for p in wanted if p.manager == "conda"), key=lambda p: (p.name != "python", p.name))
    pip = [line for p in wanted if p.manager == "pip" and (line := _pip_line(p))]
    lines = ["channels:", *(f"  - {json.dumps(name)}" for name in channels), "dependencies:"]
    lines += [f"  - {json.dumps(_conda_spec(p, mirrors))}" for p in conda]
    if pip:
        lines += ["  - pip"] if all(p.name != "pip" for p in conda) else []
        lines += ["  - pip:", *(f"    - {json.dumps(line)}" for line in [*_options(exported), *pip])]
    return "\n".join(lines) + "\n"


def _options(exported: Exported) -> Iterator[str]:
    unread = tuple(exported.unread)
    yield from (option for option in exported.options if not option.endswith(unread) or not unread)


def _conda_spec(package: Package, mirrors: Mirrors) -> str:
    place = f"{mirrors.channel(package.channel)}::" if package.channel else ""
    if package.version:
        return f"{place}{package.name}={package.version}" + (f"={package.build}" if package.build else "")
    asked = "" if package.constraint in (None, "*") else str(package.constraint)
    build = f"[build={package.build}]" if package.build else ""
    return f"{place}{package.name}{_with_operator(asked)}{build}"


def _with_operator(asked: str) -> str:
    return asked if not asked or asked[0] in "=<>!~" else f"={asked}"


def _pip_line(package: Package) -> str | None:
    if package.direct_url is None and package.version is None:
        return package.name + ("" if package.constraint in (None, "*") else str(package.constraint))
    direct = package.direct_url or {}
    if (vcs := direct.get("vcs_info")) and not vcs.get("commit_id"):
        return f"{package.name} @ {vcs['vcs']}+{direct['url']}"
    return pip_requirement(package)


def _compared(path: Path, hopes: Sequence[Chance], installed: Installed) -> tuple[Change, ...]:
    """Return what there is beside what was asked for; a version or build that was named and did not come is fatal."""
    wanted = tuple(chance.package for chance in hopes if chance.hope != "lost")
    first, second = Manifest("yaml", str(path), wanted), Manifest("prefix", str(installed.prefix), installed.packages)
    changes = compare_manifests(first, second)
    fatal = [change for change in changes if change.what in ("version", "build", "removed", "manager")]
    if fatal:
        what = [f"{c.name} came out as {c.after or 'absent'}, asked for was {c.before or 'nothing'}" for c in fatal]
        raise TracelockError([Problem(str(installed.prefix), text) for text in what], EXIT_FAILED)
    return changes
