"""Environments created first, once, in one process, whoever else shares their folder.

Snakemake takes no lock on a conda prefix: a second workflow removes the first one's half-made environment as
incomplete, and both go on. Here one lock file (flock) in the prefix keeps them apart. Every process that creates
something inherits it as its standard input, so that it also holds when the one in front was killed and its conda goes
on alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracelock.envs.clients import HINT, SNAKEMAKE_NEEDS, Client, failed, find_clients
from tracelock.envs.guard import Guard, guard_this_process
from tracelock.errors import EXIT_FAILED, Problem, TracelockError

LOCK_NAME = ".tracelock-environments.lock"
# Set for the process that holds the lock's children, which would wait for it for ever.
HELD = "TRACELOCK_ENVIRONMENTS_HELD"
DEFAULT_PREFIX = Path(".snakemake/conda")
_CACHE = ".packages-"
_CUDA = "11.8"


@dataclass(frozen=True)
class Request:
    """What to create.

    Parameters
    ----------
    prefix
        Snakemake's ``--conda-prefix``: the folder of the environments, which workflows may share.
    arguments
        Further arguments for Snakemake: the study, the Snakefile, the profile.
    """

    prefix: Path
    arguments: tuple[str, ...] = ()


def prepare(request: Request, variables: Mapping[str, str] | None = None) -> None:
    """Let Snakemake create the environments of a workflow, and nothing else.

    Raises
    ------
    TracelockError
        If there is no conda that Snakemake can use (exit code 2), or a creation fails (exit code 1). Environments that
        were created before remain; one that failed is not there.
    """
    variables = dict(os.environ if variables is None else variables)
    conda = snakemake_conda(variables)
    guard = Guard(conda.path)
    try:
        with creation_lock(request.prefix) as lock, _cache(request.prefix, variables) as cache:
            path = f"{guard.folder}{os.pathsep}{variables.get('PATH', os.defpath)}"
            _run(_command(request), {**creation_variables(variables), **cache, "PATH": path, HELD: "1"}, lock, guard)
    finally:
        guard.close()


def snakemake_conda(variables: Mapping[str, str]) -> Client:
    """Return the ``conda`` that Snakemake would call.

    Raises
    ------
    TracelockError
        If it is missing or too old; says what users of mamba and micromamba need.
    """
    clients = find_clients(variables)
    found = next((client for client in clients if client.serves_snakemake), None)
    if found:
        return found
    others = ", ".join(f"{client.kind} {client.version}" for client in clients)
    what = f"Snakemake needs a program 'conda' of version {SNAKEMAKE_NEEDS} or later" + (
        f"; found {others}" if others else ""
    )
    extra = "micromamba users: micromamba create -n base -c conda-forge conda; Miniforge has one: conda update conda"
    raise TracelockError(Problem("", what, f"{extra}; or {HINT}" if others else HINT))


def creation_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for creating environments.

    ``PYTHONNOUSERSITE`` keeps packages of ``~/.local`` out of install scripts. ``CONDA_OVERRIDE_CUDA`` lets a login
    node without a GPU stand for the node that has one. Paths of our own Python must not reach that of conda.
    """
    kept = {key: value for key, value in variables.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    return {"CONDA_OVERRIDE_CUDA": _CUDA, **kept, "PYTHONNOUSERSITE": "1"}


def _command(request: Request) -> list[str]:
    command = [sys.executable, "-m", "snakemake", "--software-deployment-method", "conda"]
    command += ["--conda-create-envs-only", "--conda-prefix", str(request.prefix), "--cores", "1"]
    return [*command, *request.arguments]


def _run(command: Sequence[str], variables: Mapping[str, str], lock: int, guard: Guard) -> None:
    """Run Snakemake with what it says passed on, and remember that for the explanation if it fails."""
    process = subprocess.Popen(
        command, stdin=lock, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(variables)
    )
    said: list[str] = []
    with process:
        for line in process.stdout or ():
            sys.stderr.write(line)
            said.append(line)
    if reason := guard.failure():
        raise TracelockError(reason, EXIT_FAILED)
    if process.returncode:
        raise failed("the environments could not be created", "".join(said))


@contextlib.contextmanager
def creation_lock(prefix: Path, say: Callable[[str], None] | None = None) -> Iterator[int]:
    """Hold the lock of a folder of environments, waiting for whoever holds it; yield its file descriptor."""
    descriptor = _acquire(prefix, say or _say)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def hold(prefix: Path, say: Callable[[str], None] | None = None) -> Callable[[], None]:
    """Take the lock of a folder of environments and return what gives it back (once; the end of the process does too).

    Does nothing below `prepare`, which holds the lock already.
    """
    if os.environ.get(HELD):
        return lambda: None
    held = [_acquire(prefix, say or _say)]

    def release() -> None:
        while held:
            os.close(held.pop())

    return release


def hold_for(workflow: Any, failure: Path, fall_back: bool = False) -> Callable[[], None]:
    """Take the lock for Snakemake's own creation of environments and return what gives it back.

    Parameters
    ----------
    workflow
        The object of that name in a Snakefile. Nothing is taken where it creates no environments: without conda, and
        in the processes that Snakemake starts for its jobs.
    failure
        Where the line goes that says which pin could not be installed and why; absent if all could.
    fall_back
        Whether Snakemake may then solve the yaml instead.
    """
    settings = workflow.deployment_settings
    if not workflow.is_main_process or "conda" not in {str(method) for method in settings.deployment_method}:
        return lambda: None
    release = hold(Path(settings.conda_prefix or DEFAULT_PREFIX))
    guard_this_process(failure, fall_back)
    return release


def _acquire(prefix: Path, say: Callable[[str], None]) -> int:
    path = prefix / LOCK_NAME
    try:
        prefix.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        what = f"cannot be written: {error.strerror}"
        hint = "choose a folder of your own with --conda-prefix"
        raise TracelockError(Problem(str(path), what, hint), EXIT_FAILED) from None
    try:
        if not _try_lock(descriptor):
            say(f"waiting: another workflow creates environments in {prefix}")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError as error:
        what = f"warning: {prefix} has no file locks ({error.strerror})"
        say(f"{what}: let one workflow at a time create environments there")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _say(text: str) -> None:
    print(f"tracelock: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def _cache(prefix: Path, variables: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """Yield the variable that gives conda a package cache for this creation alone; one that the user set is kept.

    A cache that another conda fills at the same time, or left half full when it was killed, breaks what is made from
    it. It lies in the prefix, so that the files of the environments are hard links to it and cost nothing when it goes.
    """
    if variables.get("CONDA_PKGS_DIRS"):
        yield {}
        return
    for left in prefix.glob(f"{_CACHE}*"):
        shutil.rmtree(left, ignore_errors=True)
    folder = (prefix / f"{_CACHE}{os.getpid()}-{time.time_ns()}").absolute()
    folder.mkdir()
    try:
        yield {"CONDA_PKGS_DIRS": str(folder)}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
