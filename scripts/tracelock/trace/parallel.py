"""Several processes for one large file: it is cut between two events, and each reads a part.

The cut is where the layout of the file separates two events; that it really lies between two is proved by the process
that reads up to it, which must end with a whole event. Where that fails, the file is read by one process after all.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import IO, Any, Final

import msgspec
import numpy as np

from tracelock.trace.columnise import Batch
from tracelock.trace.columns import Int32
from tracelock.trace.context import Context
from tracelock.trace.decode import StructDecoder
from tracelock.trace.kinds import Table
from tracelock.trace.source import PlainSource, is_plain
from tracelock.trace.store import CHUNK_ROWS, DTYPES, Spill, Store
from tracelock.trace.walk import Tick, Walker
from tracelock.trace.window import Window
from tracelock.trace.worker import Part, Request

LEAST_BYTES: Final = 192 << 20  # below that, a second process costs more CPU time and memory than it saves time
_RUN: Final = "from tracelock.trace.worker import main; main()"
_HEAD_START: Final = 24 << 20  # bytes that are read while another process starts
_LOOK: Final = 4 << 20  # bytes in which a cut is looked for


def workers_for(path: Path, workers: int | None) -> int:
    """Return how many processes to read `path` with; by default two, for a large plain file and if there are CPUs."""
    if os.name != "posix" or not path.is_file() or not is_plain(path):
        return 1
    if workers is not None:
        return max(workers, 1)
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 2 if usable > 1 and path.stat().st_size >= LEAST_BYTES else 1


class _Child:
    """A process that reads a part of the file."""

    def __init__(self, request: Request) -> None:
        self.columns: IO[bytes] = tempfile.TemporaryFile(prefix="tracelock-")  # noqa: SIM115
        number = self.columns.fileno()
        command = [sys.executable, "-c", _RUN, msgspec.json.encode(request).decode(), str(number)]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, pass_fds=[number])

    def part(self) -> Part | None:
        """Wait for the process and return what it read, or None if it failed."""
        text, _ = self.process.communicate()
        return msgspec.json.decode(text, type=Part) if self.process.returncode == 0 else None

    def stop(self) -> None:
        """End the process, if it still runs, and forget its columns."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        self.columns.close()


def read_parts(
    path: Path, workers: int, store: Store, decoder: StructDecoder, tick: Tick | None
) -> tuple[Walker, bool] | None:
    """Read a file with several processes, this one taking the first part.

    Returns
    -------
    The walker, with the metadata of the whole file, and whether the list of events was closed; or None if the file
    cannot be read in parts. Then `store` and `decoder` are spoilt.
    """
    with closing(PlainSource(path)) as source:
        walker = Walker(Window(source), decoder, store.keep, tick)
        if walker.find_events() not in ("object", "list"):
            return None
        cuts = _cuts(path, walker, workers)
        if len(cuts) < 3:
            return None
        separator = walker.separator or b""
        last = len(cuts) - 2
        parts = [(cuts[i], cuts[i + 1], i == last) for i in range(1, len(cuts) - 1)]
        children = [_Child(Request(str(path.resolve()), a, b, separator, end)) for a, b, end in parts]
        try:
            source.stop = cuts[1]
            if walker.walk() or walker.lost_end or decoder.context.pairs.used:
                return None
            closed = False
            for child in children:
                part = child.part()
                if part is None or not part.regular:
                    return None
                _merge(part, child.columns, store, decoder.context)
                walker.metadata += part.metadata
                walker.window.passed += part.json_bytes
                closed = part.closed
            return walker, closed
        finally:
            for child in children:
                child.stop()


def _cuts(path: Path, walker: Walker, workers: int) -> list[int]:
    """Return where the parts begin, and where the last one ends; positions behind the brace of an event."""
    separator = walker.learn_separator()
    size = path.stat().st_size
    cuts = [0]
    if separator is not None:
        with path.open("rb") as stream:
            for number in range(1, workers):
                start = max(size * number // workers + _HEAD_START, cuts[-1] + _LOOK)
                stream.seek(start)
                found = stream.read(_LOOK).find(separator)
                if found >= 0:
                    cuts.append(start + found + separator.index(b"}") + 1)
    return [*cuts, size]


def _merge(part: Part, columns: IO[bytes], store: Store, context: Context) -> None:
    """Add what another process read: its ids become those of this one's dictionaries."""
    maps: dict[str, Int32] = {}
    text = _map([context.texts.number(text) for text in part.texts])
    maps |= dict.fromkeys(("name", "shapes", "types", "stack"), text)
    maps["track"] = _map([context.tracks[lane] for lane in part.lanes])
    maps["collective"] = _map([context.collectives.number(args) for args in part.collectives])
    written = Spill(columns.fileno())
    for table, kind, rows, places in part.columns:
        dtypes = DTYPES[Table(table)]
        for chunk in range(0, rows, CHUNK_ROWS):
            made: dict[str, Any] = {}
            for name, where in places.items():
                values = np.empty(min(CHUNK_ROWS, rows - chunk), dtypes[name])
                written.read_into(where[chunk // CHUNK_ROWS], values)
                made[name] = maps[name][values] if name in maps else values
            store.keep([Batch(Table(table), kind, made)])
    for pid, tid, names in part.labels:
        context.labels.setdefault((pid, tid), {}).update(names)
    for phase, count in part.unused.items():
        context.unused[phase] = context.unused.get(phase, 0) + count
    context.spans += part.spans
    context.events += part.events
    context.tally.merge(part.counts)


def _map(ids: list[int]) -> Int32:
    """Return the new ids by the old ones; -1 (absent) stays -1, being the last."""
    return np.array([*ids, -1], dtype=np.int32)
