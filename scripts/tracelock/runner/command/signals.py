"""Runs a command as if nobody stood before it: its signals reach it, and its end is told as it was."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_PATIENCE_S = 10.0
_FROM_TERMINAL = 0x80  # si_code of the kernel (signal(7)): the terminal has sent it to the whole process group


def run_through(
    command: Sequence[str],
    environment: Mapping[str, str],
    stdout: int | None,
    meanwhile: Callable[[int, float], None],
    overdue: Callable[[], bool] = lambda: False,
) -> int:
    """Run a command to its end and return its exit code, negative for the signal that ended it.

    Parameters
    ----------
    stdout
        A file descriptor for its output, or None for ours.
    meanwhile
        Is called with the process id about every quarter of a second.
    overdue
        Says whether it is to end now: it is asked to (SIGTERM), and 10 s later made to (SIGKILL).

    Raises
    ------
    OSError
        If there is no such program, or it cannot be run.
    """
    waited = {number for number in FORWARDED if signal.getsignal(number) is not signal.SIG_IGN}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    try:
        process = subprocess.Popen(
            list(command),
            env=dict(environment),
            stdout=stdout,
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before),
        )
        _wait(process, waited, meanwhile, overdue)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return process.returncode


def _wait(
    process: subprocess.Popen[bytes],
    waited: set[signal.Signals],
    meanwhile: Callable[[int, float], None],
    overdue: Callable[[], bool],
) -> None:
    began, asked_at = time.monotonic(), None
    while process.poll() is None:
        got = signal.sigtimedwait(waited, 0.05 if time.monotonic() - began < 1 else 0.2)
        if got is not None and not (got.si_code == _FROM_TERMINAL and got.si_signo in (signal.SIGINT, signal.SIGQUIT)):
            process.send_signal(got.si_signo)
        passed = time.monotonic() - began
        if asked_at is None and overdue():
            asked_at = passed
            process.send_signal(signal.SIGTERM)
        elif asked_at is not None and passed > asked_at + _PATIENCE_S:
            process.send_signal(signal.SIGKILL)
        meanwhile(process.pid, passed)


def end_like(code: int) -> int:
    """Return the exit code for our own process, or end it by the signal that ended the command."""
    if code >= 0:
        return code
    signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))  # not a second dump
    os.kill(os.getpid(), -code)
    return 128 - code
