"""Small things that several tests need."""

from __future__ import annotations

from pathlib import Path


def files_below(folder: Path) -> dict[str, int]:
    """Return every file below `folder` with its modification time (ns)."""
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
