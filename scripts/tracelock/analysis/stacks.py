"""Where in the code each operator was called from.

Old traces write the stack into the operator (``Call stack``); newer ones record Python frames as rows of their own,
and the stack of an operator is the frames around it. Operators of the backward thread have none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tracelock.analysis.intervals import Mask, chunks
from tracelock.analysis.nesting import of_kinds, sweep, to_rows
from tracelock.trace.columns import HostKind, HostRows, Int32, Int64, Trace

UInt64 = npt.NDArray[np.uint64]
_FRAMED = (HostKind.PYTHON, HostKind.OPERATOR, HostKind.ANNOTATION)
_BASE = np.uint64(0x9E3779B97F4A7C15)


class Stacks:
    """The call stacks of some host rows: equal ones have equal ids."""

    def __init__(self, trace: Trace, rows: Int64) -> None:
        """Find the stack of the host rows at the positions `rows`, shape (n,)."""
        self._trace = trace
        self._written = bool((trace.host.stack[rows] >= 0).any())
        if self._written:
            self.ids: Int64 = trace.host.stack[rows].astype(np.int64)  # -1 without; shape (n,)
            return
        self._frame = enclosing_frames(trace.host)
        self.ids = _path_ids(trace.host.name, self._frame, rows)

    def text(self, row: int) -> str:
        """Return the frames of one of the rows, innermost first, one a line."""
        if self._written:
            return "\n".join(frame.strip() for frame in self._trace.texts[int(self._trace.host.stack[row])].split(";"))
        return "\n".join(self._frames(row))

    def _frames(self, row: int) -> Sequence[str]:
        names, frames = self._trace.host.name, []
        while (row := int(self._frame[row])) >= 0:
            frames.append(self._trace.texts[int(names[row])])
        return frames


def has_stacks(trace: Trace) -> bool:
    """Return whether the trace tells where operators were called from."""
    return bool((trace.host.stack >= 0).any() or of_kinds(trace.host, (HostKind.PYTHON,)).any())


def enclosing_frames(host: HostRows) -> Int32:
    """Return for each operator, label and frame the innermost Python frame around it, -1 without; shape (host,)."""
    found = np.full(len(host), -1, np.int32)
    for block in sweep(host, of_kinds(host, _FRAMED)):
        settled = ~block.begun | (host.kind[block.rows] == HostKind.PYTHON)
        above = _skip(block.parent, settled)
        around = to_rows(above, block.rows)
        inherits = (above >= 0) & (host.kind[around] != HostKind.PYTHON)  # from before the block: its frame is known
        around[inherits] = found[around[inherits]]
        found[block.rows[block.begun]] = around[block.begun]
    return found


def _skip(parent: Int32, wanted: Mask) -> Int32:
    """Return the innermost wanted row around each row, -1 without."""
    above = parent.copy()
    climbing = np.flatnonzero(above >= 0)
    while len(climbing := climbing[~wanted[above[climbing]]]):
        above[climbing] = above[above[climbing]]
        climbing = climbing[above[climbing] >= 0]
    return above


def _path_ids(name: Int32, frame: Int32, rows: Int64) -> Int64:
    """Return an id for the names on the way from each row's frame outwards; -1 where there is no frame."""
    inner = frame[rows]
    needed = _with_ancestors(frame, np.unique(inner[inner >= 0]))
    if not len(needed):
        return np.full(len(rows), -1, np.int64)
    outer = np.searchsorted(needed, frame[needed]).astype(np.int32)
    outer[frame[needed] < 0] = -1
    _, ids = np.unique(path_digests(scatter(name[needed]), outer), return_inverse=True)
    place = np.minimum(np.searchsorted(needed, inner), len(needed) - 1)
    return np.where(inner >= 0, ids.reshape(-1)[place], -1)


def _with_ancestors(frame: Int32, rows: Int32) -> Int32:
    """Return the positions of `rows` and of all frames around them, ascending."""
    held = np.zeros(len(frame), np.bool_)
    while len(rows):
        held[rows] = True
        rows = np.unique(frame[rows])
        rows = rows[rows >= 0]
        rows = rows[~held[rows]]
    return np.flatnonzero(held).astype(np.int32)


def path_digests(own: UInt64, jump: Int32) -> UInt64:
    """Return a number for each row's path outwards: a polynomial in the rows' own numbers, modulo 2**64.

    Each round doubles how far a row has looked, so a stack of depth d takes log2(d) rounds. `own` and `jump`, the
    next row outwards or -1, are used up.
    """
    digest, factor = own, np.full(len(own), _BASE)
    while (jump >= 0).any():
        for part in chunks(len(jump)):
            moving = np.flatnonzero(jump[part] >= 0) + part.start
            at = jump[moving]
            seen = digest[moving] + factor[moving] * digest[at], factor[moving] * factor[at], jump[at]
            digest[moving], factor[moving], jump[moving] = seen
    return digest


def scatter(names: Int32) -> UInt64:
    """Return well-mixed numbers for ids (the finaliser of splitmix64)."""
    mixed = (names.astype(np.uint64) + np.uint64(2)) * _BASE
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
