"""What concerns the running process: its seeds, threads, memory and output. Reads /proc where there is one.

Standard library only at import: threads and output are set up before torch is imported.
"""

from __future__ import annotations

import json
import os
import platform
import random
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
# What Snakemake sets for every program that it starts.
_SET_BY_SNAKEMAKE = (
    *_THREAD_VARIABLES,
    *("GOTO_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS"),
)
OWN_THREADS = "TRACELOCK_OWN_THREADS"


class Stopped(BaseException):
    """A signal asked this process to end."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(f"stopped by {signal.Signals(number).name}")


class OverdueError(Exception):
    """A single step, or the build, did not end in any reasonable time."""


@contextmanager
def stoppable() -> Iterator[None]:
    """Turn SIGTERM, SIGINT and SIGHUP into `Stopped`, so that the run can tidy up."""
    owner = os.getpid()

    def stop(number: int, _: FrameType | None) -> None:
        if os.getpid() != owner:  # a process that was forked below: it is not the run that is to tidy up
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        for other in before:
            signal.signal(other, signal.SIG_IGN)  # tidying up is not to be stopped half-way
        raise Stopped(number)

    # What the caller ignores stays ignored: nohup, jobs in the background.
    heard = [number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def overdue_after(seconds: float | None) -> Iterator[None]:
    """Raise `OverdueError` in the block when it has run for `seconds`: bounds are else looked at between steps."""

    def ring(*_: object) -> None:
        raise OverdueError(f"a step has not ended {seconds:.0f} s after the start of the measurement")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds or 0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def say(line: str, stream: TextIO) -> None:
    """Print a line to somebody who may be gone: a pipe whose reader has ended is no fault of whoever speaks."""
    with suppress(OSError):
        print(line, file=stream, flush=True)


@contextmanager
def output_to(log: Path) -> Iterator[TextIO]:
    """Send everything that this process and its children print to `log`; yield a stream to the former stderr."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    kept = os.dup(1), os.dup(2)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    for number in (1, 2):
        os.dup2(descriptor, number)
    os.close(descriptor)
    try:
        with os.fdopen(os.dup(kept[1]), "w", buffering=1) as outside:
            yield outside
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        for number, former in zip((1, 2), kept, strict=True):
            os.dup2(former, number)
            os.close(former)


def affinity() -> list[int]:
    """Return the numbers of the cores that this process is bound to (taskset, a batch system); none if not known."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def usable_cores() -> int:
    """Return the cores that this process may use, by its affinity and by the quota of its control group."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, min(cores, int(int(quota) / int(period))))
    except (OSError, ValueError):
        return cores


def set_thread_variables(threads: int) -> None:
    """State the threads for OpenMP and MKL before torch is imported.

    Snakemake and batch systems set these variables to whatever a job was given, which changes what is measured.
    """
    for name in _THREAD_VARIABLES:
        os.environ[name] = str(threads)


def note_thread_variables() -> None:
    """Note, for the programs below, which variables for threads the person who starts a study has set."""
    own = {name: os.environ[name] for name in _SET_BY_SNAKEMAKE if name in os.environ}
    os.environ.setdefault(OWN_THREADS, json.dumps(own))


def restore_thread_variables() -> None:
    """Give a script the variables for threads that it has without us; nothing happens where nobody noted them."""
    noted = os.environ.pop(OWN_THREADS, None)
    if noted is None:
        return
    for name in _SET_BY_SNAKEMAKE:
        os.environ.pop(name, None)
    os.environ.update(json.loads(noted))


def seed_everything(seed: int) -> None:
    """Seed Python, torch with all its devices, and numpy where something has imported it."""
    import torch

    random.seed(seed)
    torch.manual_seed(seed)
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)


def peak_rss_bytes() -> int:
    """Return the largest resident memory that this process has had.

    VmHWM is preferred: ru_maxrss also counts what the process was before it became this program.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def cpu_name() -> str:
    """Return the name of this machine's processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
