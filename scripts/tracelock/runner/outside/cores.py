"""How long a thread waits for a core: what other programs take from it. Knows nothing of torch."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence

PATH = "/proc/thread-self/schedstat"  # ns on a core, ns ready to run without one, times on a core


NOT_TOLD = "this system does not tell how long a thread waits for a core"


def in_us(times: Sequence[int | None]) -> list[float] | None:
    """Return nanoseconds as microseconds, None where one is not known."""
    known = [each / 1000 for each in times if each is not None]
    return known if len(known) == len(times) else None


class Queue:
    """Tells how long the thread that asks was ready to run and had no core, from one question to the next.

    Linux counts that for each thread (``run_delay``); elsewhere it is not known. What a hypervisor takes from the
    whole machine is not in it.
    """

    def __init__(self, path: str = PATH) -> None:
        self._path = path
        self._file: int | None = None
        self._owner = (0, 0)
        self._before: int | None = None

    def lap(self) -> int | None:
        """Return nanoseconds since the last call; None for a thread's first, and where the system does not tell."""
        owner = (os.getpid(), threading.get_native_id())
        if owner != self._owner:
            self.close()
            self._owner = owner
        before, self._before = self._before, self._waited()
        return None if before is None or self._before is None else max(0, self._before - before)

    def close(self) -> None:
        """Let go of the file and of what was read; the next question begins anew."""
        if self._file is not None:
            os.close(self._file)
        self._file = self._before = None

    def _waited(self) -> int | None:
        try:
            if self._file is None:
                self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            return int(os.pread(self._file, 128, 0).split()[1])
        except (OSError, IndexError, ValueError):
            return None
