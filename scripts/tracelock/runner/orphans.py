"""No process of a run outlives it: loading processes end with the run, and what is left is found and ended.

Linux only (prctl); elsewhere each function does nothing, and torch's own watchdogs have to do.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing.util
import os
import signal
import sys
import threading
import time

from tracelock.runner.probes import descendants

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


class _Fork:
    """What is known just before a fork: who forks, and whether by its main thread."""

    parent = 0
    by_main_thread = False


def end_with(parent: int, number: int = signal.SIGKILL) -> None:
    """Have the kernel send this process a signal when the thread that started it ends; at once if `parent` is gone."""
    _prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def adopt_orphans() -> None:
    """Become the parent of processes below this one whose own parent ends."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def bind_loading_processes() -> None:
    """Have every process that multiprocessing forks from here on end with its parent.

    torch's watchdog compares with the parent that it finds at its start, and so waits for ever when that has been
    killed already. Only multiprocessing's children: others may be meant to live on, such as a daemon's.
    """
    os.register_at_fork(before=_note)
    multiprocessing.util.register_after_fork(_Fork, _bind)


def _note() -> None:
    _Fork.parent, _Fork.by_main_thread = os.getpid(), threading.current_thread() is threading.main_thread()


def _bind(_: object) -> None:
    # The kernel means the thread, and a thread that starts a loader may end before it.
    if _Fork.by_main_thread:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != _Fork.parent:
        os._exit(1)


def end_survivors(grace_s: float = 2.0) -> int:
    """End all processes below this one, asked first and killed after `grace_s`; return how many there were."""
    left = _below()
    count = len(left)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in left:
            _send(pid, number)
        deadline = time.monotonic() + grace_s
        while (left := _below()) and time.monotonic() < deadline:
            time.sleep(0.02)
    return count


def _below() -> list[int]:
    """Return the living processes below this one; those that have ended are waited for."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return []
    try:
        return descendants(os.getpid())
    except OSError:
        return []


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(OSError):  # it has ended meanwhile, or is another user's
        os.kill(pid, number)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)
