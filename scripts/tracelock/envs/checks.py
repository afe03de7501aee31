"""``tracelock env check``: whether yaml, lock and pin agree, and what will go wrong although they do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from tracelock.envs.catalog import PLATFORM, Environment, environments
from tracelock.envs.content_hash import content_hash
from tracelock.envs.known import asked_device, broken, built_device
from tracelock.envs.lock import Lock, LockedPackage, read_lock
from tracelock.envs.manifest import explicit_package
from tracelock.envs.package import Package
from tracelock.envs.render import expected_pin
from tracelock.envs.spec import Dependency, EnvSpec, read_spec, read_text
from tracelock.envs.versions import satisfies
from tracelock.errors import Problem, TracelockError

_DEFAULTS = ("defaults", "anaconda", "main", "free", "r", "msys2")
_ANACONDA = re.compile(r"^https?://(repo\.(anaconda|continuum)\.(com|io)|conda\.anaconda\.org/(anaconda|main)(/|$))")
_PIN_PLATFORM = re.compile(r"^# platform: (\S+)\s*$", re.MULTILINE)
_SHOWN = 5

T = TypeVar("T")


@dataclass
class _Case:
    """One environment on one platform, with as much of it as could be read."""

    environment: Environment
    platform: str
    spec: EnvSpec | None = None
    lock: Lock | None = None

    @cached_property
    def packages(self) -> Mapping[str, LockedPackage]:
        """Return the lock's conda packages by name."""
        lock = self.lock
        found = lock.for_platform(self.platform) if lock and self.platform in lock.metadata.platforms else ()
        return {package.name: package for package in found if package.manager == "conda"}

    @property
    def relock(self) -> str:
        return f"tracelock env lock {self.environment.name}"

    def in_lock(self, package: LockedPackage) -> str:
        assert self.lock is not None  # noqa: S101 (its packages come from it)
        return f"{self.lock.path}:{self.lock.line(package)}"


def check_environment(environment: Environment, platform: str = PLATFORM) -> list[Problem]:
    """Return everything that is wrong with an environment's files, each with its file, line and remedy.

    Nothing is fetched and nothing is solved.
    """
    problems: list[Problem] = []
    case = _Case(environment, platform)
    case.spec = _tried(lambda: read_spec(environment.spec), problems)
    if environment.lock.exists():
        case.lock = _tried(lambda: read_lock(environment.lock), problems)
        if lock := case.lock:
            _tried(lambda: lock.for_platform(platform), problems)
    else:
        problems.append(Problem(str(environment.spec), f"has no lock ({environment.lock})", f"make it: {case.relock}"))
    for check in (_spec_checks, _agreement, _lock_checks, _pin_checks):
        problems += check(case)
    return problems


def check_all(root: Path, platform: str = PLATFORM) -> list[Problem]:
    """Return everything that is wrong with the environments of a project, and pins that no environment uses."""
    known = environments(root)
    problems = [problem for each in known.values() for problem in check_environment(each, platform)]
    for pin in sorted((root / "envs").glob("*.pin.txt")):
        if pin.name.removesuffix(".pin.txt").rpartition(".")[0] not in known:
            what = "is used by nobody: Snakemake looks for <yaml's name>.<platform>.pin.txt"
            problems.append(Problem(str(pin), what, "rename or remove it"))
    return problems


def _tried(read: Callable[[], T], problems: list[Problem]) -> T | None:
    try:
        return read()
    except TracelockError as error:
        problems += error.problems
        return None


def _spec_checks(case: _Case) -> Iterator[Problem]:
    spec = case.spec
    if not spec:
        return
    for channel in spec.channels:
        if channel.text in _DEFAULTS or _ANACONDA.match(channel.text):
            what = f"channel '{channel.text}' is Anaconda's own, whose licence most organisations must pay for"
            yield Problem(spec.where(channel.line), what, "take the packages from conda-forge")
    if "nodefaults" not in [channel.text for channel in spec.channels]:
        line = spec.channels[-1].line if spec.channels else None
        what = "channels do not end with nodefaults: conda adds the machine's own, which are 'defaults' on most"
        yield Problem(spec.where(line), what, "add '  - nodefaults' as the last channel")
    if spec.pip:
        names = ", ".join(line.text for line in spec.pip)
        what = f"pip section: a pin file cannot hold pip packages, so Snakemake would leave these out: {names}"
        yield Problem(spec.where(spec.pip[0].line), what, "take them from a channel, or leave them out")
    yield from _repeated(spec)


def _repeated(spec: EnvSpec) -> Iterator[Problem]:
    first: dict[str, Dependency] = {}
    for asked in spec.dependencies:
        if asked.name in first:
            what = f"'{asked.text}' asks for {asked.name} again, after line {first[asked.name].line}"
            yield Problem(spec.where(asked.line), what, "write one line: conda-lock takes the last alone")
        first.setdefault(asked.name, asked)


def _agreement(case: _Case) -> Iterator[Problem]:
    """Yield where the lock is not what the yaml asks for."""
    spec, lock = case.spec, case.lock
    if not spec or not lock or case.platform not in lock.metadata.platforms:
        return
    found = [*_unmet(case, spec), *_other_channels(case, spec, lock)]
    locked = lock.metadata.content_hash.get(case.platform)
    if not found and not spec.pip and locked != content_hash(spec, case.platform):
        what = f"was changed after {lock.path} was made from it (content hash)"
        found.append(Problem(str(spec.path), what, case.relock))
    yield from found
    sources = [(lock.path.parent / source).resolve() for source in lock.metadata.sources]
    if spec.path.resolve() not in sources:
        yield Problem(
            str(lock.path), f"was made from {', '.join(lock.metadata.sources)}, not from {spec.path}", case.relock
        )
    yield from _wrong_device(case, spec)


def _unmet(case: _Case, spec: EnvSpec) -> Iterator[Problem]:
    for asked in spec.dependencies:
        package = case.packages.get(asked.name)
        if package is None:
            what = f"asks for '{asked.text}', but its lock does not hold {asked.name}"
            yield Problem(spec.where(asked.line), what, case.relock)
        elif not _meets(package, asked):
            what = (
                f"asks for '{asked.text}', but its lock holds {package.name} {package.version} {package.build_string}"
            )
            yield Problem(spec.where(asked.line), what, case.relock)


def _meets(package: LockedPackage, asked: Dependency) -> bool:
    pattern = ".*".join(re.escape(part) for part in (asked.build or "*").split("*"))
    if asked.channel and f"/{asked.channel}/" not in package.url:
        return False
    return satisfies(package.version, asked.version) and bool(re.fullmatch(pattern, package.build_string or ""))


def _other_channels(case: _Case, spec: EnvSpec, lock: Lock) -> Iterator[Problem]:
    asked = [channel.text for channel in spec.channels if channel.text != "nodefaults"]
    locked = [channel.url for channel in lock.metadata.channels]
    if asked != locked:
        what = f"asks for the channels {', '.join(asked)}, but its lock was made over {', '.join(locked)}"
        yield Problem(spec.where(spec.channels[0].line if spec.channels else None), what, case.relock)


def _wrong_device(case: _Case, spec: EnvSpec) -> Iterator[Problem]:
    torch, asked = case.packages.get("pytorch"), asked_device(spec)
    built = built_device(torch) if torch else None
    if torch and asked and built and built != asked:
        words = {"cpu": "a CPU build", "cuda": "a CUDA build"}
        what = f"pytorch {torch.version} {torch.build_string} is {words[built]}, but {words[asked]} is asked for"
        wish = "pytorch=*=*cuda*, and lock it with CONDA_OVERRIDE_CUDA=11.8" if asked == "cuda" else "pytorch=*=*cpu*"
        yield Problem(case.in_lock(torch), what, f"name the build in {spec.path}: {wish}")


def _lock_checks(case: _Case) -> Iterator[Problem]:
    lock = case.lock
    if not lock:
        return
    for package in lock.packages:
        if package.platform == case.platform:
            yield from _origin(case.in_lock(package), package.name, package.url)
    pip = [package for package in lock.packages if package.manager == "pip" and package.platform == case.platform]
    if pip:
        what = f"holds pip packages, which a pin file leaves out: {', '.join(package.name for package in pip)}"
        yield Problem(
            case.in_lock(pip[0]), what, f"remove the pip section of {case.environment.spec}, then {case.relock}"
        )
    yield from _open_ends(case)
    for package, what, ask in broken(case.packages):
        yield Problem(case.in_lock(package), what, f"ask for {ask} in {case.environment.spec}, then {case.relock}")


def _origin(where: str, name: str, url: str) -> Iterator[Problem]:
    if _ANACONDA.match(url):
        yield Problem(where, f"{name} comes from Anaconda's defaults: {url}", "take it from conda-forge")
    if url.startswith("file:"):
        what = f"{name} comes from a folder ({url}), and conda compares no hash of such a file"
        yield Problem(where, what, "serve the folder over http and name it in TRACELOCK_CHANNEL_MIRRORS")


def _open_ends(case: _Case) -> Iterator[Problem]:
    """Yield what a package needs and the lock does not hold; a lock that was cut off or edited has such ends."""
    for package in case.packages.values():
        for name, versions in package.dependencies.items():
            if name.startswith("__"):
                continue
            need = f"{package.name} needs {name} {versions}".rstrip()
            if name not in case.packages:
                yield Problem(case.in_lock(package), f"{need}, which the lock does not hold", case.relock)
            elif not satisfies(case.packages[name].version, versions):
                what = f"{need}, but the lock holds {name} {case.packages[name].version}"
                yield Problem(case.in_lock(package), what, case.relock)


def _pin_checks(case: _Case) -> Iterator[Problem]:
    pin = case.environment.pin(case.platform)
    remedy = f"tracelock env render {case.environment.name}"
    if not pin.exists():
        yield Problem(str(case.environment.spec), f"has no pin file for Snakemake ({pin})", remedy)
        return
    text = read_text(pin)
    platform = _PIN_PLATFORM.search(text)
    if platform and platform[1] != case.platform:
        yield Problem(str(pin), f"is a list for {platform[1]}, but its name says {case.platform}", remedy)
        return
    found = dict(_pin_lines(text))
    faults = [
        problem for line, package in found.items() for problem in _pin_line_faults(f"{pin}:{line}", package, remedy)
    ]
    if case.packages:
        faults += _pin_against_lock(case, pin, found, remedy)
    yield from faults
    if not faults and case.packages and case.lock and text != expected_pin(case.environment, case.lock, case.platform):
        yield Problem(str(pin), f"holds the packages of {case.lock.path}, but is not what is rendered from it", remedy)


def _pin_lines(text: str) -> Iterator[tuple[int, Package | None]]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and line.strip()[0] not in "#@":
            yield number, explicit_package(line.strip())


def _pin_line_faults(where: str, package: Package | None, remedy: str) -> Iterator[Problem]:
    if package is None:
        yield Problem(where, "is no address of a conda package", remedy)
        return
    if package.sha256 is None:
        has = "has an MD5 alone, which can be forged" if package.md5 else "has no hash, so conda would take any file"
        yield Problem(where, f"{package.name} {has}", remedy)
    yield from _origin(where, package.name, package.url or "")


def _pin_against_lock(case: _Case, pin: Path, found: Mapping[int, Package | None], remedy: str) -> Iterator[Problem]:
    pinned = {package.name: (line, package) for line, package in found.items() if package}
    missing = [package for name, package in case.packages.items() if name not in pinned]
    for package in missing[:_SHOWN]:
        yield Problem(str(pin), f"lacks {package.name} {package.version} of {case.in_lock(package)}", remedy)
    if len(missing) > _SHOWN:
        yield Problem(str(pin), f"lacks {len(missing) - _SHOWN} further packages of the lock", remedy)
    for name, (line, listed) in pinned.items():
        if name not in case.packages:
            yield Problem(f"{pin}:{line}", f"{name} {listed.version} is not in {case.environment.lock}", remedy)
        else:
            yield from _pin_difference(f"{pin}:{line}", listed, case.packages[name], case, remedy)


def _pin_difference(where: str, pinned: Package, locked: LockedPackage, case: _Case, remedy: str) -> Iterator[Problem]:
    want = f"{locked.version} {locked.build_string}"
    have = f"{pinned.version} {pinned.build}"
    if have != want:
        yield Problem(where, f"{pinned.name} {have}, but {case.in_lock(locked)} has {want}", remedy)
    elif pinned.url and pinned.url.partition("#")[0] != locked.url:
        yield Problem(where, f"{pinned.name} comes from another address than in {case.in_lock(locked)}", remedy)
    elif pinned.sha256 and pinned.sha256 != locked.hash.sha256:
        yield Problem(where, f"{pinned.name} has another sha256 than in {case.in_lock(locked)}", remedy)
