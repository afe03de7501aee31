"""Where rows wait until the file is read: in chunks, in memory, and beyond a limit in a temporary file.

Rows of one kind wait together, because they have the same columns: a column that no row of a kind has takes no room.
"""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
import threading
import weakref
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from tracelock.trace.columnise import Batch
from tracelock.trace.columns import DeviceRows, FlowRows, HostRows, MemoryRows
from tracelock.trace.extract import Columns
from tracelock.trace.kinds import Table

Array: TypeAlias = npt.NDArray[Any]

CHUNK_ROWS: Final = 16 << 10
SPILL_BYTES: Final = 96 << 20  # of waiting columns

ROWS: Final[dict[Table, type]] = {
    Table.HOST: HostRows,
    Table.DEVICE: DeviceRows,
    Table.INSTANT: MemoryRows,
    Table.FLOW: FlowRows,
}
_DTYPES: Final[dict[str, Any]] = {
    "Int64": np.int64,
    "Int32": np.int32,
    "Int16": np.int16,
    "Int8": np.int8,
    "UInt64": np.uint64,
    "Float32": np.float32,
    "npt.NDArray[np.bool_]": np.bool_,
}
DTYPES: Final[dict[Table, dict[str, np.dtype[Any]]]] = {
    table: {name: np.dtype(_DTYPES[kind]) for name, kind in rows.__annotations__.items()}
    for table, rows in ROWS.items()
}


def absent(dtype: np.dtype[Any]) -> Any:
    """Return what stands for an absent value in columns of `dtype`."""
    return {"f": np.nan, "u": 0, "b": False}.get(dtype.kind, -1)


class Spill:
    """A temporary file without a name: it is gone when nothing refers to it any more, even after a kill.

    Parameters
    ----------
    descriptor
        An open file to use instead of one of its own.
    """

    def __init__(self, descriptor: int | None = None) -> None:
        if descriptor is None:
            self._file = tempfile.TemporaryFile(prefix="tracelock-", buffering=0)  # noqa: SIM115
        else:
            self._file = open(descriptor, "r+b", buffering=0, closefd=False)  # noqa: SIM115
        self._end = 0
        self._lock = threading.Lock()
        weakref.finalize(self, self._file.close)

    def write(self, array: Array, align: int = 1) -> tuple[int, int]:
        """Append `array` at a multiple of `align`; return its place and its number of rows. Several threads may."""
        with self._lock:
            place = self._end + -self._end % align
            self._end = place + array.nbytes
        done, left = place, np.ascontiguousarray(array).data.cast("B")
        while left:
            count = os.pwrite(self._file.fileno(), left, done)
            done, left = done + count, left[count:]
        return place, len(array)

    def read_into(self, place: int, array: Array) -> None:
        """Fill the contiguous `array` with what was written at `place`."""
        left = array.data.cast("B")
        while left:
            count = os.preadv(self._file.fileno(), [left], place)
            place, left = place + count, left[count:]

    def mapped(self, array: Array) -> Array:
        """Return a read-only column of the values of `array` whose memory is the file's."""
        if not len(array):
            return array
        place, rows = self.write(array, mmap.ALLOCATIONGRANULARITY)
        pages = mmap.mmap(self._file.fileno(), array.nbytes, access=mmap.ACCESS_READ, offset=place)
        return np.frombuffer(pages, dtype=array.dtype, count=rows)


def release_table(table: HostRows | DeviceRows | MemoryRows | FlowRows) -> None:
    """Let go of the memory of those columns of a table that are mapped from a file; a later look brings it back."""
    for name in table.__annotations__:
        pages = pages_of(getattr(table, name))
        if pages is not None and hasattr(pages, "madvise"):
            pages.madvise(mmap.MADV_DONTNEED)


def pages_of(column: Array) -> mmap.mmap | None:
    """Return the mapped file that holds `column`, or None if it is in memory."""
    pages = getattr(column.base, "obj", None)
    return pages if isinstance(pages, mmap.mmap) else None


class _Waiting:
    """Rows of one kind."""

    def __init__(self, dtypes: dict[str, np.dtype[Any]]) -> None:
        self.rows = 0
        self.filled = 0  # rows of the chunk that is being filled
        self.open: Columns = {name: np.empty(CHUNK_ROWS, dtype) for name, dtype in dtypes.items()}
        self.chunks: dict[str, list[Array | tuple[int, int]]] = {name: [] for name in dtypes}


class Store:
    """Collects batches, and hands out each column as one array, in order of kind and arrival.

    Parameters
    ----------
    spill
        Where the columns go, at once; or the size in bytes beyond which they go to a temporary file.
    """

    def __init__(self, spill: Spill | int = SPILL_BYTES) -> None:
        self._waiting: dict[tuple[Table, int], _Waiting] = {}
        self._spill_bytes = 0 if isinstance(spill, Spill) else spill if hasattr(os, "preadv") else sys.maxsize
        self._bytes = 0
        self.spill = None if isinstance(spill, int) else spill

    def keep(self, batches: list[Batch]) -> None:
        """Add the rows of `batches`."""
        for table, kind, columns in batches:
            waiting = self._waiting.get((table, kind))
            if waiting is None:
                dtypes = DTYPES[table]
                waiting = self._waiting[table, kind] = _Waiting({name: dtypes[name] for name in columns})
            self._add(waiting, columns)

    def _add(self, waiting: _Waiting, columns: Columns) -> None:
        for name in columns.keys() - waiting.open.keys():
            self._introduce(waiting, name, columns[name].dtype)
        done, rows = 0, len(next(iter(columns.values())))
        while done < rows:
            count = min(rows - done, CHUNK_ROWS - waiting.filled)
            place = waiting.filled
            for name, chunk in waiting.open.items():
                values = columns.get(name)
                chunk[place : place + count] = absent(chunk.dtype) if values is None else values[done : done + count]
            done += count
            waiting.filled += count
            if waiting.filled == CHUNK_ROWS:
                self._close(waiting)
        waiting.rows += rows

    def _introduce(self, waiting: _Waiting, name: str, dtype: np.dtype[Any]) -> None:
        """Begin a column that rows of this kind did not have so far (descriptions of collectives)."""
        count = waiting.rows // CHUNK_ROWS
        waiting.chunks[name] = [np.full(CHUNK_ROWS, absent(dtype), dtype) for _ in range(count)]
        waiting.open[name] = np.full(CHUNK_ROWS, absent(dtype), dtype)

    def _close(self, waiting: _Waiting) -> None:
        """Put a full chunk away."""
        self._bytes += sum(chunk.nbytes for chunk in waiting.open.values())
        if self.spill is None and self._bytes > self._spill_bytes:
            self.spill = Spill()
            for other in self._waiting.values():
                for chunks in other.chunks.values():
                    chunks[:] = [self.spill.write(c) if isinstance(c, np.ndarray) else c for c in chunks]
        for name, chunk in waiting.open.items():
            waiting.chunks[name].append(chunk if self.spill is None else self.spill.write(chunk))
        if self.spill is None:
            waiting.open = {name: np.empty(CHUNK_ROWS, chunk.dtype) for name, chunk in waiting.open.items()}
        waiting.filled = 0

    def kinds(self, table: Table) -> list[tuple[int, int]]:
        """Return the kinds that `table` has rows of, and how many, in the order in which `column` has them."""
        return sorted((kind, some.rows) for (of, kind), some in self._waiting.items() if of == table and some.rows)

    def rows(self, table: Table) -> int:
        """Return the number of rows of `table`."""
        return sum(rows for _, rows in self.kinds(table))

    def column(self, table: Table, name: str) -> Array | None:
        """Return a column of all rows of `table`, or None if no row has it. Rows of one kind are together."""
        dtype = DTYPES[table][name]
        parts = [(self._waiting[table, kind], rows) for kind, rows in self.kinds(table)]
        if not any(name in waiting.open for waiting, _ in parts):
            return None
        out = np.empty(sum(rows for _, rows in parts), dtype)
        place = 0
        for waiting, rows in parts:
            self._copy(waiting, name, out[place : place + rows])
            place += rows
        return out

    def _copy(self, waiting: _Waiting, name: str, out: Array) -> None:
        if name not in waiting.open:
            out[:] = absent(out.dtype)
            return
        place = 0
        for chunk in waiting.chunks[name]:
            target = out[place : place + CHUNK_ROWS]
            if isinstance(chunk, np.ndarray):
                target[:] = chunk
            elif self.spill is not None:
                self.spill.read_into(chunk[0], target)
            place += CHUNK_ROWS
        out[place:] = waiting.open[name][: waiting.filled]

    def drop(self, table: Table, name: str) -> None:
        """Forget a column of which no more is needed."""
        for (of, _), waiting in self._waiting.items():
            if of == table:
                waiting.chunks.pop(name, None)

    def written(self) -> list[tuple[int, int, int, dict[str, list[int]]]]:
        """Write all that still waits to the file; return table, kind, rows and places by column of all rows."""
        made: list[tuple[int, int, int, dict[str, list[int]]]] = []
        for (table, kind), waiting in self._waiting.items():
            rows = waiting.rows
            if waiting.filled:
                self._close(waiting)
            places = {name: [place for place, _ in chunks] for name, chunks in waiting.chunks.items()}
            made.append((int(table), kind, rows, places))
        return made
