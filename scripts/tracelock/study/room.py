"""What of results may go when room is needed: what was recorded, once figures have been made from it.

Records (run.json, samples.csv), analyses, tables, figures and reports stay: they are small, and the conclusion rests on
them. Without its trace a run cannot be looked at again in a timeline, nor analysed by a later tracelock.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tracelock.errors import Problem, TracelockError
from tracelock.study.lock import await_study
from tracelock.study.taken import PATTERNS, take_away

KINDS = {
    "traces": "recorded traces; timelines and later analyses need them",
    "logs": "logs of runs that went well, and of Snakemake",
    "unfinished": "what killed writers left",
    "cache": "columns of traces, made again when they are looked at",
}
_PATTERNS = {
    "traces": tuple(f"**/{pattern}" for pattern in PATTERNS),
    "logs": ("**/log.txt", "logs/*.txt"),
    "unfinished": ("**/.*.json", "**/.*.gz", "**/.*.csv", "**/.*.html"),
}
_ABANDONED_S = 3600.0  # a file that is still being written is younger


@dataclass(frozen=True)
class Room:
    """What one kind of file takes in one place."""

    place: Path
    kind: str
    files: tuple[Path, ...]
    size: int  # bytes

    def free(self) -> int:
        """Take the files away, and return how many bytes that freed; one that is gone already frees nothing."""
        if self.kind == "traces":
            return sum(take_away(file.parent, [file], "tracelock clean") for file in self.files)
        freed = 0
        for file in self.files:
            with contextlib.suppress(FileNotFoundError):
                size = file.lstat().st_size
                file.unlink()
                freed += size
        return freed


def studies_in(folder: Path) -> list[Path]:
    """Return the folders of results at or below `folder`.

    Raises
    ------
    TracelockError
        If there are none: nothing that is not a study's is ever touched.
    """
    found = [file.parent for file in (folder / "plan.json", *sorted(folder.glob("*/plan.json"))) if file.is_file()]
    if not found:
        raise TracelockError(Problem(str(folder), "holds no results of a study", "give results, or results/<study>"))
    return found


def room_of(study: Path, kinds: Iterable[str]) -> list[Room]:
    """Return what of a study may go, by kind, traces first.

    Raises
    ------
    TracelockError
        If a process runs the study.
    """
    await_study(str(study))
    return [room for kind in kinds if kind in _PATTERNS and (room := _room(study, kind, _files(study, kind))).files]


def room_of_cache(folder: Path | None) -> list[Room]:
    """Return what the cache of columns takes."""
    files = [] if folder is None else sorted(folder.glob("*.columns.npz"))
    return [_room(folder, "cache", files)] if folder and files else []


def _files(study: Path, kind: str) -> Iterator[Path]:
    found = dict.fromkeys(file for pattern in _PATTERNS[kind] for file in sorted(study.glob(pattern)))
    for file in found:
        if file.is_symlink() or not file.is_file() or not _goes(file, kind):
            continue
        yield file


def _goes(file: Path, kind: str) -> bool:
    """Return whether a file may go: traces of runs without an analysis may not, nor logs that say why a run failed."""
    if kind == "traces":
        return (file.parent / "analysis.json").is_file()
    if kind == "logs" and file.name == "log.txt":
        return (file.parent / "run.json").is_file() and not (file.parent / "failure.json").exists()
    if kind == "logs":
        return file.name != "environment-failure.txt"
    if kind == "unfinished":
        return time.time() - file.stat().st_mtime > _ABANDONED_S
    return True


def _room(place: Path, kind: str, files: Iterable[Path]) -> Room:
    listed = tuple(files)
    return Room(place, kind, listed, sum(file.stat().st_size for file in listed))
