"""Watches one process of a run from beside it: passes on what it prints, signals, limits, and the end of the driver."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from pathlib import Path

from tracelock.runner import phase
from tracelock.runner.ends import EndsLog
from tracelock.runner.identity import driver_alive

_POLL_MS = 500
_PIECE = 1 << 16
# After these seconds a process that was asked to end, or has passed its limit, is made to.
_PATIENCE_S = 30.0
_DUMP_S = 3.0


class Watch:
    """Waits for a child.

    Parameters
    ----------
    child
        Its pid.
    output
        The end of a pipe from which comes what it and the processes below it print.
    driver
        The value of TRACELOCK_DRIVER, or None: the child is asked to end when that process has ended.
    """

    def __init__(self, child: int, output: int, log: EndsLog, driver: str | None) -> None:
        self._child, self._output, self._log, self._driver = child, output, log, driver
        self.asked: int | None = None  # the first signal to end that was passed on
        self._asked_at = 0.0
        self._dumped_at: float | None = None
        self.overdue_s: float | None = None  # the limit for which the child was killed

    def pass_on(self, number: int, _: object = None) -> None:
        """Send the child a signal that was sent to this process."""
        if self.asked is None:
            self.asked, self._asked_at = number, time.monotonic()
        _kill(self._child, number)

    def wait(self) -> int:
        """Return the child's status as os.waitpid gives it."""
        poll = select.poll()
        poll.register(self._output, select.POLLIN)
        is_open = True
        while True:
            is_open = is_open and self._read(poll)
            if not is_open:
                time.sleep(0.005)
            pid, status = os.waitpid(self._child, os.WNOHANG)
            if pid:
                return status
            self._enforce()

    def drain(self) -> None:
        """Take what is left of the output once all its writers have ended, or are to be waited for no longer."""
        os.set_blocking(self._output, False)
        try:
            while data := os.read(self._output, _PIECE):
                self._log.write(data)
        except BlockingIOError:
            pass

    def _read(self, poll: select.poll) -> bool:
        """Wait a moment for output; return whether there may be more."""
        if not poll.poll(_POLL_MS):
            return True
        data = os.read(self._output, _PIECE)
        self._log.write(data)
        return bool(data)

    def _enforce(self) -> None:
        """Ask the child to end with its driver; kill it when it does not end as asked, or at its limit."""
        now = time.monotonic()
        if self._driver and self.asked is None and driver_alive(self._driver) is False:
            self.pass_on(signal.SIGTERM)
        if self.asked is not None and now - self._asked_at > _PATIENCE_S:
            _kill(self._child, signal.SIGKILL)
        at = phase.current()
        if at["limit_s"] is not None and now - at["since"] > at["limit_s"] + _PATIENCE_S:
            self._break_off(now, at["limit_s"])

    def _break_off(self, now: float, limit_s: float) -> None:
        """End a child that hangs where no exception can reach it: Python's fault handler first says where it is."""
        self.overdue_s = limit_s
        if self._dumped_at is None:
            self._dumped_at = now
            _kill(self._child, signal.SIGABRT)
        elif now - self._dumped_at > _DUMP_S:
            _kill(self._child, signal.SIGKILL)


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def memory_kills() -> int:
    """Return how many processes the kernel has ended for lack of memory, in this control group or else the machine."""
    for path in _counters():
        try:
            rows = [line.split() for line in path.read_text().splitlines()]
        except OSError:
            continue
        counts = [int(row[1]) for row in rows if len(row) == 2 and row[0] == "oom_kill"]
        if counts:
            return counts[0]
    return 0


def _counters() -> list[Path]:
    root = Path("/sys/fs/cgroup")
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        lines = []
    own = [line.split(":", 2)[2].lstrip("/") for line in lines if line.startswith("0::")]
    return [*(root / path / "memory.events" for path in own), root / "memory.events", Path("/proc/vmstat")]
