"""``tracelock env lock``: solve an environment anew with conda-lock, and render its pin.

conda-lock writes to a file beside the lock, which takes the lock's place only when it was read without a problem: a
failed or broken solve leaves lock and pin as they were.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tracelock.envs.catalog import PLATFORM, Environment
from tracelock.envs.clients import Client, failed, output_of
from tracelock.envs.content_hash import VIRTUAL_PACKAGES, content_hash
from tracelock.envs.lock import Lock, LockedPackage, read_lock
from tracelock.envs.mirrors import Mirrors
from tracelock.envs.render import render
from tracelock.envs.spec import CHANNEL_HOST, EnvSpec, read_spec, read_text
from tracelock.envs.versions import satisfies
from tracelock.errors import EXIT_FAILED, Problem, TracelockError
from tracelock.io import write_text

INSTALL = "pip install 'conda-lock>=2'"


def relock(
    environment: Environment, client: Client, mirrors: Mirrors | None = None, platform: str = PLATFORM
) -> list[str]:
    """Solve an environment anew, write its lock and its pin, and return what changed, a line for each package.

    Parameters
    ----------
    mirrors
        Where the channels are asked; the lock holds the canonical addresses nevertheless.

    Raises
    ------
    TracelockError
        If the yaml is bad (nothing is solved), conda-lock is missing, or the solve fails.
    """
    mirrors = mirrors or Mirrors()
    spec = read_spec(environment.spec)
    if spec.pip:
        what = "pip section: a pin file cannot hold pip packages, so this environment cannot be locked"
        raise TracelockError(Problem(spec.where(spec.pip[0].line), what, "take them from a channel, or leave them out"))
    before = _packages(environment.lock, platform)
    lock = _solved(environment, spec, client, mirrors, platform)
    render(environment, platform)
    return list(_changes(before, {p.name: p for p in lock.for_platform(platform)}))


def _solved(environment: Environment, spec: EnvSpec, client: Client, mirrors: Mirrors, platform: str) -> Lock:
    program = find_conda_lock()
    target = environment.lock
    target.parent.mkdir(parents=True, exist_ok=True)
    # Beside the lock, because conda-lock writes the way from the lock to its source into it.
    draft = target.with_name(f".{os.getpid()}.{target.name}")
    with tempfile.TemporaryDirectory() as scratch:
        try:
            with _settings(mirrors, Path(scratch)) as variables:
                _run_conda_lock(program, client, environment, draft, platform, variables)
            text = _canonical(read_text(draft), mirrors).replace(draft.name, target.name)
            draft.write_text(text, encoding="utf-8")
            lock = read_lock(draft)
            _verified(lock, spec, platform)
            if not _same(lock, target):
                write_text(target, text)
        finally:
            draft.unlink(missing_ok=True)
    return lock


def find_conda_lock() -> str:
    """Return the conda-lock to use: that of this Python, else the one on PATH.

    Raises
    ------
    TracelockError
        If there is none, or only one before 2 (whose content hash is another).
    """
    beside = Path(sys.executable).with_name("conda-lock")
    programs = [program for program in (shutil.which(str(beside)), shutil.which("conda-lock")) if program]
    versions = {program: _version_of(program) for program in programs}
    good = [program for program, version in versions.items() if version and satisfies(version, ">=2")]
    if good:
        return good[0]
    if not versions:
        raise TracelockError(Problem("", "conda-lock is not installed", INSTALL))
    program, version = next(iter(versions.items()))
    what = f"{program} is conda-lock {version or 'of an unknown version'}, whose content hash later ones refuse"
    raise TracelockError(Problem("", what, INSTALL))


def _version_of(program: str) -> str | None:
    found = re.search(r"\d+(\.\d+)+", output_of([program, "--version"]) or "")
    return found[0] if found else None


@contextmanager
def _settings(mirrors: Mirrors, scratch: Path) -> Iterator[Mapping[str, str]]:
    """Yield the variables for conda-lock; with mirrors, conda's own settings point each channel to its mirror.

    The yaml stays as it is: its channels are part of the content hash.
    """
    variables = {**os.environ, "PYTHONNOUSERSITE": "1"}
    if mirrors:
        condarc = scratch / "condarc"
        condarc.write_text(_condarc(mirrors), encoding="utf-8")
        variables |= {"CONDARC": str(condarc), "MAMBARC": str(condarc)}
    yield variables


def _condarc(mirrors: Mirrors) -> str:
    """Return conda's settings for the mirrors: the host's is ``channel_alias``, those of channels stand alone."""
    lines = ["channel_priority: strict"]
    channels = [(source.removeprefix(CHANNEL_HOST).rstrip("/"), target) for source, target in mirrors.pairs]
    lines += [f"channel_alias: {target.rstrip('/')}" for name, target in channels if not name]
    custom = [(name, target) for name, target in channels if name and "://" not in name]
    # A multichannel of one: custom_channels would append the channel's name to the mirror's address.
    lines += ["custom_multichannels:"] if custom else []
    lines += [f"  {name}:\n    - {target.rstrip('/')}" for name, target in custom]
    return "\n".join(lines) + "\n"


def _run_conda_lock(
    program: str, client: Client, environment: Environment, draft: Path, platform: str, variables: Mapping[str, str]
) -> None:
    command = [program, "lock", "--kind", "lock", "--md", "timestamp", "--platform", platform]
    command += ["--conda", str(client.path), "--no-mamba", "--no-micromamba"]
    command += ["--virtual-package-spec", str(VIRTUAL_PACKAGES)]
    command += ["--file", str(environment.spec.absolute()), "--lockfile", str(draft.absolute())]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(variables), check=False)
    if done.returncode or not draft.exists():
        hint = "is the channel reachable, and does every package exist there? TRACELOCK_CHANNEL_MIRRORS names a mirror"
        raise failed(f"{environment.name} could not be solved", done.stderr + done.stdout, hint)


def _canonical(text: str, mirrors: Mirrors) -> str:
    return re.sub(r"(?<=  url: )\S+", lambda match: mirrors.canonical(match[0]), text)


def _verified(lock: Lock, spec: EnvSpec, platform: str) -> None:
    """Refuse a lock that conda-lock itself would not accept as that of its source."""
    if lock.metadata.content_hash.get(platform) != content_hash(spec, platform):
        what = "conda-lock computed another content hash than tracelock does"
        raise TracelockError(Problem(str(spec.path), what, f"use conda-lock 2 to 4: {INSTALL}"), EXIT_FAILED)


def _same(lock: Lock, path: Path) -> bool:
    """Return whether a lock says what `path` says already, but for its date."""
    try:
        old = read_lock(path)
    except TracelockError:
        return False
    return old.packages == lock.packages and old.metadata.content_hash == lock.metadata.content_hash


def _packages(path: Path, platform: str) -> dict[str, LockedPackage]:
    try:
        return {package.name: package for package in read_lock(path).for_platform(platform)}
    except TracelockError:
        return {}  # absent, damaged or of another platform: the new lock takes its place


def _changes(before: Mapping[str, LockedPackage], after: Mapping[str, LockedPackage]) -> Iterator[str]:
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old and new and old.url != new.url:
            yield f"~ {name} {old.version} {old.build_string} -> {new.version} {new.build_string}"
        elif old is None and new:
            yield f"+ {name} {new.version} {new.build_string}"
        elif new is None and old:
            yield f"- {name} {old.version} {old.build_string}"
