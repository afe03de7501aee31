"""Where a row stands: the outermost operator around it, and the user's line where stacks were recorded."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from tracelock.analysis.costs import TraceRow
from tracelock.analysis.intervals import Mask
from tracelock.analysis.names import is_loading, is_step, matching
from tracelock.analysis.nesting import of_kinds
from tracelock.analysis.prepared import Prepared
from tracelock.trace.columns import HostKind, Int32, Int64, Trace

# Frames of libraries and of the interpreter: "torch/nn/modules/module.py(1501): _call_impl", "<built-in ...>".
_NOT_THE_USERS: Final = re.compile(
    r"^<|^nn\.Module: |(^|/)(torch|torchvision|torchaudio|numpy|PIL)/|site-packages|dist-packages|lib/python\d|"
    r"^(abc|codecs|contextlib|copy|enum|functools|genericpath|glob|gzip|hashlib|inspect|io|linecache|os|pathlib|pickle"
    r"|posixpath|queue|random|runpy|selectors|shutil|socket|struct|subprocess|tempfile|threading|traceback|typing"
    r"|warnings|weakref|zipfile)(\.py)?\("
    r"|^(asyncio|collections|concurrent|ctypes|email|encodings|http|importlib|json|logging|multiprocessing|re|urllib|xml)/"
    r"|\(0\): |^tracelock/runner/(?!workloads/)"
)
_FRAME: Final = re.compile(r"^\S.*\(\d+\): ")


def is_users(frame: str) -> bool:
    """Return whether a python_function row is a frame of the user's own code: ``train.py(44): check``."""
    return _FRAME.match(frame) is not None and _NOT_THE_USERS.search(frame) is None


class Places:
    """The operators and the user's frames of one trace, looked for once."""

    def __init__(self, known: Prepared) -> None:
        self.known = known
        self.operators = _operators(known.trace)  # shape (host rows,)
        self._frames = np.flatnonzero(of_kinds(known.trace.host, (HostKind.PYTHON,)))
        self._stacks = np.flatnonzero(known.trace.host.stack >= 0)

    @cached_property
    def outer(self) -> Int64:
        """The outermost operators of the thread that marks the steps, by start."""
        parent, is_operator = self.known.tree.parent, self.operators
        mine = is_operator & (self.known.trace.host.track == self.known.windows.track)
        found: Int64 = np.flatnonzero(mine & ((parent < 0) | ~is_operator[parent]))
        return found

    def outermost(self, rows: Int64 | Int32) -> Int32:
        """Return for each of `rows` the outermost operator that holds it with only operators between; -1 without."""
        is_operator, parent = self.operators, self.known.tree.parent
        found = np.full(len(rows), -1, np.int32)
        if not len(is_operator):
            return found
        found = np.where(is_operator[rows], rows, found).astype(np.int32)
        at = parent[rows].copy()
        climbing = np.flatnonzero((at >= 0) & is_operator[at])
        while len(climbing):
            found[climbing] = at[climbing]
            at[climbing] = parent[at[climbing]]
            climbing = climbing[(at[climbing] >= 0) & is_operator[at[climbing]]]
        return found

    def user_frame(self, row: int) -> str | None:
        """Return the user's innermost frame around host row `row`, None where no stack tells it."""
        host = self.known.trace.host
        start, end = int(host.start[row]), int(host.start[row] + host.duration[row])
        return self.frame_around(int(host.track[row]), start, end)

    def frame_around(self, track: int, start: int, end: int) -> str | None:
        """Return the user's innermost frame that holds [start, end] on a track; ns.

        Newer traces record frames as rows of their own; those of before 2022 write the stack into the operators.
        """
        texts, host = self.known.trace.texts, self.known.trace.host
        around = self._around(self._frames, track, start, end)
        frames = [texts[name] for name in host.name[around[::-1]].tolist()]
        written = self._around(self._stacks, track, start, end)
        frames += texts[int(host.stack[written[-1]])].split(";") if len(written) else []
        return next((frame.strip() for frame in frames if is_users(frame.strip())), None)

    def _around(self, rows: Int64, track: int, start: int, end: int) -> Int64:
        """Return which of `rows`, by start, hold [start, end] on a track."""
        host = self.known.trace.host
        before = rows[: int(np.searchsorted(host.start[rows], start, side="right"))]
        holds = (host.track[before] == track) & (host.start[before] + host.duration[before] >= end)
        found: Int64 = before[holds]
        return found

    def host_rows(self, rows: Iterable[int]) -> tuple[TraceRow, ...]:
        """Return host rows as a person reads them."""
        return tuple(self._host_row(int(row)) for row in rows)

    def _host_row(self, row: int) -> TraceRow:
        texts, host = self.known.trace.texts, self.known.trace.host
        outer = int(self.outermost(np.array([row]))[0])
        return TraceRow(
            name=texts[host.name[row]],
            start_us=(int(host.start[row]) - self.known.origin) / 1000,
            duration_us=int(host.duration[row]) / 1000,
            inside=texts[host.name[outer]] if outer not in (-1, row) else None,
            code=self.user_frame(row),
        )


def _operators(trace: Trace) -> Mask:
    """Return which host rows are operators.

    Marks of steps and of the loader are none, whatever the category that old traces give them.
    """
    host = trace.host
    marks = matching(trace.texts, host.name, lambda name: is_step(name) or is_loading(name))
    return of_kinds(host, (HostKind.OPERATOR,)) & ~marks


def longest(duration: Int64, rows: Int64, count: int = 3) -> npt.NDArray[np.signedinteger]:
    """Return the `count` longest of `rows`, by `duration` of all rows."""
    return rows[np.argsort(-duration[rows], kind="stable")[:count]]
