"""The second look at a trace: its columns are kept in the user's cache folder, and taken from there.

A trace is known by its size, the time it was last written, and a digest of its beginning, middle and end; what is kept
is good for the reader's very code that made it. The folder is bounded: what was looked at longest ago goes first.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

from tracelock.io import atomic_path
from tracelock.trace import kept
from tracelock.trace.columns import Trace
from tracelock.trace.reader import Progress, read_trace, release

LEAST_JSON: Final = 16_000_000  # bytes: below that, reading takes no longer than looking here
MOST_BYTES: Final = 4 << 30  # of all that is kept; TRACELOCK_CACHE_BYTES says otherwise
_SAMPLE: Final = 64 << 10
_ABANDONED_S: Final = 3600.0  # a file that is still being written is younger
_SUFFIX: Final = ".columns.npz"


def open_trace(path: Path, progress: Progress | None = None, *, keep: bool) -> Trace:
    """Return the trace in `path`, from the cache if it is there; see `read_trace` for what it raises.

    Parameters
    ----------
    keep
        Whether to keep its columns, and to look for them.
    """
    folder, key = folder_of(), _key(path) if keep else None
    if folder is None or key is None:
        return read_trace(path, progress)
    place = folder / f"{key}{_SUFFIX}"
    trace = kept.read(place, key) if place.is_file() else None
    if trace is not None:
        with contextlib.suppress(OSError):
            os.utime(place)
        return replace(trace, facts=replace(trace.facts, file=path.name), path=path)
    trace = read_trace(path, progress)
    if trace.facts.json_bytes >= LEAST_JSON and _key(path) == key:  # else it grew while it was read
        _keep(trace, place, key)
    return trace


def folder_of() -> Path | None:
    """Return the folder of the cache, None where the user has no home: TRACELOCK_CACHE, else the system's place."""
    asked = os.environ.get("TRACELOCK_CACHE")
    if asked is not None:
        return Path(asked) / "columns" if asked else None
    for name, below in (("XDG_CACHE_HOME", ""), ("LOCALAPPDATA", ""), ("HOME", ".cache")):
        if (place := Path(os.environ.get(name, ""))).is_absolute():
            return place / below / "tracelock" / "columns"
    return None


def _key(path: Path) -> str | None:
    """Return what `path` is known by, None where it cannot be read (reading it says why)."""
    try:
        with path.open("rb") as stream:
            state = os.fstat(stream.fileno())
            digest = hashlib.sha256(f"{_code()} {state.st_size} {state.st_mtime_ns}".encode())
            for place in (0, state.st_size // 2, max(0, state.st_size - _SAMPLE)):
                stream.seek(place)
                digest.update(stream.read(_SAMPLE))
            return digest.hexdigest()[:32]
    except OSError:
        return None


@functools.cache
def _code() -> str:
    """Return a digest of the reader's own code: another reader may read otherwise."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _keep(trace: Trace, place: Path, key: str) -> None:
    """Write the columns of `trace` to `place`; a cache that cannot be written is none, and says nothing."""
    with contextlib.suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        size = _size(trace)
        if size > min(_most(), shutil.disk_usage(place.parent).free // 2):
            return
        _clean(place.parent, _most() - size)
        with atomic_path(place) as part:
            kept.write(trace, part, key)
    release(trace)


def _size(trace: Trace) -> int:
    """Return about how many bytes the columns and texts of `trace` take in a file."""
    tables = (trace.host, trace.device, trace.memory, trace.flows)
    columns = (getattr(rows, name) for rows in tables for name in rows.__annotations__)
    whole = sum(int(column.nbytes) for column in columns if column.strides != (0,))
    return whole + sum(map(len, trace.texts))


def _most() -> int:
    asked = os.environ.get("TRACELOCK_CACHE_BYTES", "")
    return int(asked) if asked.isdecimal() and asked.isascii() else MOST_BYTES


def _clean(folder: Path, room: int) -> None:
    """Take away what was looked at longest ago until `room` bytes hold the rest, and what a killed writer left."""
    found = []
    for file in folder.glob(f"*{_SUFFIX.rpartition('.')[2]}"):
        state = file.stat()
        if file.name.startswith("."):
            if time.time() - state.st_mtime > _ABANDONED_S:
                file.unlink(missing_ok=True)
        elif file.name.endswith(_SUFFIX):
            found.append((state.st_mtime, state.st_size, file))
    for _, size, file in sorted(found, reverse=True):
        room -= size
        if room < 0:
            file.unlink(missing_ok=True)
