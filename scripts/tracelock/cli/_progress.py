"""Progress on long files, on stderr: a bar on a terminal, plain lines elsewhere, nothing for short files."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tracelock.cli._quiet import quiet

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

QUIET_S = 1.0  # nothing is said of what is over by then
LINES_S = 5.0  # between plain lines


class Reading:
    """Tells how far a file is read; call it with bytes done and bytes in all."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.begun = self.told = time.monotonic()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __call__(self, done: int, whole: int) -> None:
        now = time.monotonic()
        if quiet() or now - self.begun < QUIET_S:
            return
        if sys.stderr.isatty():
            self._draw(done, whole)
        elif now - self.told >= LINES_S:
            self.told = now
            print(f"tracelock: {self.name}: read {100 * done / max(whole, 1):.0f} %", file=sys.stderr, flush=True)

    def _draw(self, done: int, whole: int) -> None:
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(self.name, total=whole)
            self._bar.start()
        if self._task is not None:
            self._bar.update(self._task, completed=done, total=whole)

    def analysing(self) -> None:
        """Tell that the file is read and its figures are being computed."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=f"{self.name}: analysing")

    def stop(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()


@contextmanager
def reading(name: str) -> Iterator[Reading]:
    """Tell how far the file `name` is read, until the block ends."""
    progress = Reading(name)
    try:
        yield progress
    finally:
        progress.stop()
