"""Where a row stands: the outermost operator around it, and the user's line where stacks were recorded."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from tracelock.analysis.costs import TraceRow
from tracelock.analysis.intervals import Mask
from tracelock.analysis.names import is_loading, is_step, matching
from tracelock.analysis.nesting import Tree, of_kinds
from tracelock.analysis.prepared import Prepared
from tracelock.trace.columns import HostKind, Int32, Int64, Trace

# Frames of libraries and of the interpreter: "torch/nn/modules/module.py(1501): _call_impl", "<built-in ...>".
_NOT_THE_USERS: Final = re.compile(
    r"^<|^nn\.Module: |(^|/)(torch|torchvision|torchaudio|numpy|PIL)/|site-packages|dist-packages|lib/python\d|"
    r"^(threading|contextlib|multiprocessing/.*|concurrent/.*|runpy|queue|selectors|socket|pickle)(\.py)?\("
    r"|\(0\): |^tracelock/runner/(?!workloads/)"
)
_FRAME: Final = re.compile(r"^\S.*\(\d+\): ")


def is_users(frame: str) -> bool:
    """Return whether a python_function row is a frame of the user's own code: ``train.py(44): check``."""
    return _FRAME.match(frame) is not None and _NOT_THE_USERS.search(frame) is None


def operators(trace: Trace) -> Mask:
    """Return which host rows are operators and not marks of steps or of the loader."""
    host = trace.host
    marks = matching(trace.texts, host.name, lambda name: is_step(name) or is_loading(name))
    return of_kinds(host, (HostKind.OPERATOR,)) & ~marks


def outermost_operator(trace: Trace, tree: Tree, rows: Int64 | Int32) -> Int32:
    """Return for each of `rows` the outermost operator that holds it with only operators between; -1 without.

    Steps and the loader's iterators are no operators, whatever the category that old traces give them.
    """
    if not len(trace.host):
        return np.full(len(rows), -1, np.int32)
    is_operator = operators(trace)
    found = np.where(is_operator[rows], rows, -1).astype(np.int32)
    at = tree.parent[rows].copy()
    climbing = np.flatnonzero((at >= 0) & is_operator[at])
    while len(climbing):
        found[climbing] = at[climbing]
        at[climbing] = tree.parent[at[climbing]]
        climbing = climbing[(at[climbing] >= 0) & is_operator[at[climbing]]]
    return found


def user_frame(trace: Trace, row: int) -> str | None:
    """Return the user's innermost frame around host row `row`, None where no stack tells it."""
    host = trace.host
    start, end = int(host.start[row]), int(host.start[row] + host.duration[row])
    return frame_around(trace, int(host.track[row]), start, end) or _written_frame(
        trace, int(host.track[row]), start, end
    )


def frame_around(trace: Trace, track: int, start: int, end: int) -> str | None:
    """Return the user's innermost frame that holds [start, end] on a track; ns."""
    host = trace.host
    around = (host.kind == HostKind.PYTHON) & (host.track == track)
    around &= (host.start <= start) & (host.start + host.duration >= end)
    names = (trace.texts[name] for name in host.name[np.flatnonzero(around)[::-1]])
    return next((name for name in names if is_users(name)), None)


def _written_frame(trace: Trace, track: int, start: int, end: int) -> str | None:
    """Return the same where the operators carry their stacks as texts, as traces of before 2022 do."""
    host = trace.host
    around = np.flatnonzero((host.stack >= 0) & (host.track == track) & (host.start <= start))
    around = around[host.start[around] + host.duration[around] >= end]
    if not len(around):
        return None
    frames = (frame.strip() for frame in trace.texts[int(host.stack[around[-1]])].split(";"))
    return next((frame for frame in frames if is_users(frame)), None)


def host_rows(known: Prepared, rows: Iterable[int]) -> tuple[TraceRow, ...]:
    """Return host rows as a person reads them."""
    return tuple(_host_row(known, int(row)) for row in rows)


def _host_row(known: Prepared, row: int) -> TraceRow:
    trace, host = known.trace, known.trace.host
    outer = int(outermost_operator(trace, known.tree, np.array([row]))[0])
    return TraceRow(
        name=trace.texts[host.name[row]],
        start_us=(int(host.start[row]) - known.origin) / 1000,
        duration_us=int(host.duration[row]) / 1000,
        inside=trace.texts[host.name[outer]] if outer not in (-1, row) else None,
        code=user_frame(trace, row),
    )


def longest(duration: Int64, rows: Int64, count: int = 3) -> npt.NDArray[np.signedinteger]:
    """Return the `count` longest of `rows`, by `duration` of all rows."""
    return rows[np.argsort(-duration[rows], kind="stable")[:count]]
