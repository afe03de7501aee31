"""Small things that several tests need."""

from __future__ import annotations

import signal
from pathlib import Path


def files_below(folder: Path) -> dict[str, int]:
    """Return every file below `folder` with its modification time (ns)."""
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def hear_signals() -> None:
    """Set the dispositions of a shell in the foreground: under nohup, or in the background, some are ignored."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
