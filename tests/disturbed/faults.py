"""The kinds of faults. Each is done once, at a moment that the campaign draws."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.disturbed.study import Study, processes

_ASKED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True)
class Fault:
    """One kind of fault.

    Parameters
    ----------
    name
        What it is called in the campaign's lines.
    target
        The kind of process that has to be there, `driver` for any moment.
    do
        Does it to the process; returns whether it could be done.
    ends
        Whether the driver ends by it.
    needs_mount
        Whether the study has to lie on a small file system of its own.
    """

    name: str
    target: str
    do: Callable[[Study, int, random.Random], bool]
    ends: bool = False
    needs_mount: bool = False


def _signal(number: signal.Signals, group: bool = False) -> Callable[[Study, int, random.Random], bool]:
    def send(_: Study, pid: int, __: random.Random) -> bool:
        try:
            (os.killpg if group else os.kill)(pid, number)
        except ProcessLookupError:
            return False
        return True

    return send


def _kinds() -> Iterator[Fault]:
    for target in ("driver", "snakemake", "beside", "run"):
        for number in (signal.SIGKILL, *_ASKED):
            yield Fault(f"{number.name} to {target}", target, _signal(number), target in ("driver", "snakemake"))
    for number in (signal.SIGKILL, signal.SIGTERM):
        yield Fault(f"{number.name} to analysis", "analysis", _signal(number))
    for number in (signal.SIGKILL, signal.SIGHUP):  # the terminal is closed
        yield Fault(f"{number.name} to all", "driver", _signal(number, group=True), True)
    yield Fault("a file is removed", "driver", _remove)
    yield Fault("the work of a run is removed", "run", _remove_work)
    yield Fault("the disk is full for a while", "driver", _fill, needs_mount=True)
    yield Fault("the disk is read-only for a while", "driver", _read_only, needs_mount=True)


def _remove(study: Study, _: int, chance: random.Random) -> bool:
    files = sorted(path for path in study.files() if "envs" not in path.parts)
    if not files:
        return False
    chance.choice(files).unlink(missing_ok=True)
    return True


def _remove_work(study: Study, _: int, chance: random.Random) -> bool:
    work = sorted(path for path in study.base.glob("runs/*/*/*/.attempt-*/*") if path.is_file())
    if not work:
        return False
    chance.choice(work).unlink(missing_ok=True)
    return True


def _fill(study: Study, _: int, chance: random.Random) -> bool:
    filler = study.folder / "filler"
    try:
        with filler.open("wb", buffering=0) as stream:
            while stream.write(b"\0" * (1 << 16)):
                pass
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
    time.sleep(chance.uniform(1, 8))
    filler.unlink()
    return True


def _read_only(study: Study, _: int, chance: random.Random) -> bool:
    for _ in range(50):  # refused while somebody writes
        if _remount(study.folder, "ro"):
            time.sleep(chance.uniform(1, 8))
            return _remount(study.folder, "rw")
        time.sleep(0.1)
    return False


def _remount(folder: Path, how: str) -> bool:
    done = subprocess.run(["mount", "-o", f"remount,{how}", folder], capture_output=True, check=False)
    return done.returncode == 0


@contextlib.contextmanager
def small_disk(folder: Path, mb: int = 64) -> Iterator[bool]:
    """Put a file system of `mb` MB at a folder for the block; yield whether that could be done."""
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={mb}m", "tracelock-test", folder]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", folder], check=False)


def target_of(fault: Fault, driver: int) -> int | None:
    """Return the process that a fault is for, None where there is none now."""
    found = processes(driver)[fault.target]
    return found[-1] if found else None


KINDS = tuple(_kinds())
