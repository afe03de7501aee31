"""When a command is ended that nobody waits for any longer: it makes no steps, or does not end after its last one.

A script may take as long as it likes to its first step and between two of them, within a limit; how many steps it
has to make until its window is recorded, and how long each takes, is its own affair.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

_LOOK_S = 2.0
LEAVING_S = 120.0  # for what a script does between the end of its window and its own


class Patience:
    """Watches the steps of the processes below a folder.

    Parameters
    ----------
    silent_s
        Seconds without the end of a step after which the command is ended; None: however long it takes.
    leaving_s
        Seconds without one after which it is ended when its window is recorded.
    """

    def __init__(self, folder: Path, silent_s: float | None, leaving_s: float = LEAVING_S) -> None:
        self._folder, self._silent_s, self._leaving_s = folder, silent_s, leaving_s
        self._seen: dict[str, bytes] = {}
        self._moved = self._looked = time.monotonic()
        self.ended: str | None = None  # why the command was ended

    def __call__(self) -> bool:
        """Return whether the command is to be ended now."""
        now = time.monotonic()
        if self.ended is None and self._silent_s is not None and now - self._looked >= _LOOK_S:
            self._looked = now
            self._look(now, self._silent_s)
        return self.ended is not None

    def _look(self, now: float, silent_s: float) -> None:
        counts = {path.parent.name: _read(path) for path in self._folder.glob("*/count")}
        if counts != self._seen:
            self._seen, self._moved = counts, now
        silent = now - self._moved
        if silent > min(self._leaving_s, silent_s) and self._recorded():
            self.ended = f"it had not ended {silent:.0f} s after its window"
        elif silent > silent_s:
            self.ended = f"no step ended for {silent:.0f} s"

    def _recorded(self) -> bool:
        return any(_has_window(path) for path in self._folder.glob("*/record.json"))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _has_window(path: Path) -> bool:
    try:
        return bool(json.loads(path.read_text(encoding="utf-8"))["window"]["trace"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
