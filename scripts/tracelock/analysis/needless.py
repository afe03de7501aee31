"""Work of the main thread by what it is for: loops, copies, double precision, results that nothing uses."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from tracelock.analysis.costs import TraceRow
from tracelock.analysis.intervals import Intervals, Mask, length, union
from tracelock.analysis.mainthread import MainThread, Part, is_node
from tracelock.analysis.names import matching
from tracelock.analysis.nesting import of_kinds
from tracelock.analysis.periods import Run, runs
from tracelock.analysis.places import longest
from tracelock.analysis.tensor_cores import is_eligible
from tracelock.analysis.work import Copies, Loop
from tracelock.trace.columns import HostKind, Int32, Int64

# Operators that take a piece of a tensor: a loop over samples or time steps begins with one.
_PIECE: Final = re.compile(r"aten::(select|slice|unbind|narrow|index|index_select|split|chunk|unsqueeze|_unsafe_view)$")
_COPY: Final = re.compile(r"aten::(clone|contiguous|copy_|_to_copy|to)$")
# Operators that give a tensor another form, and copy where they have to: what they copy was asked for.
_FORM: Final = re.compile(r"aten::(copy|type_as|reshape|flatten|repeat|expand)$")
_KINDS: Final[dict[str, str]] = {"aten::clone": "clone", "aten::contiguous": "contiguous", "aten::copy_": "copy"}
NEAR = 100_000  # ns
SHORT_TURN = 1_000_000  # ns: longer turns are work, not dispatch


def loops(main: MainThread) -> tuple[tuple[Loop, ...], Intervals]:
    """Return the loops of the user's own code, the longest first, and the time that they cover."""
    own = np.flatnonzero(main.part == Part.OWN)
    names = main.places.known.trace.host.name[main.rows[own]].copy()
    # Nothing goes on from one step to the next, or across a backward pass or an update.
    breaks = np.flatnonzero((np.diff(own) > 1) | (np.diff(main.step[own]) > 0)) + 1
    groups: dict[tuple[int, ...], list[Int64]] = {}
    spans: list[tuple[int, int]] = []
    for part in np.split(np.arange(len(own)), breaks):
        for run in runs(names[part]):
            rows = own[part[run.first : run.last]]
            if _is_loop(main, rows, run):
                groups.setdefault(_turn(names[part[run.first : run.first + run.period]].tolist()), []).append(rows)
                spans.append((int(main.start[rows[0]]), int(main.end[rows].max())))
    found = [_loop(main, turn, each) for turn, each in groups.items()]
    low, high = np.array(spans, np.int64).reshape(-1, 2).T
    return tuple(sorted(found, key=lambda loop: -loop.host_us)), union(low, high)


def _turn(names: Sequence[int]) -> tuple[int, ...]:
    """Return a turn from its smallest rotation on, so that equal loops are one wherever they were met first."""
    return min(tuple(names[at:]) + tuple(names[:at]) for at in range(len(names)))


def _is_loop(main: MainThread, rows: Int64, run: Run) -> bool:
    """Return whether a run is a loop over pieces, and not a network whose layers are alike.

    Layers multiply matrices; a loop over samples does that, too, but takes a piece in each turn. Turns that take long
    are work that a batch would not shorten.
    """
    trace = main.places.known.trace
    turn = trace.host.name[main.rows[rows[: run.period]]]
    layers = matching(trace.texts, turn, is_eligible).any()
    pieces = matching(trace.texts, turn, lambda name: _PIECE.match(name) is not None).any()
    spent = int(main.end[rows[-1]] - main.start[rows[0]]) / run.turns
    return spent <= SHORT_TURN and bool(pieces or not layers)


def _loop(main: MainThread, turn: tuple[int, ...], parts: Sequence[Int64]) -> Loop:
    places, count = main.places, len(main.steps)
    texts = places.known.trace.texts
    rows = np.concatenate(parts)
    spent = sum(int(main.end[each].max() - main.start[each[0]]) for each in parts)
    return Loop(
        names=tuple(texts[name] for name in turn),
        turns_per_step=len(rows) / len(turn) / count,
        calls_per_step=len(rows) / count,
        host_us=spent / count / 1000,
        backward_us=backward_ns(main, rows) / count / 1000,
        rows=worst(main, rows),
    )


def backward_ns(main: MainThread, rows: Int64) -> int:
    """Return how long the nodes of the backward pass take that belong to the operators at positions `rows`."""
    known, host = main.places.known, main.places.known.trace.host
    numbered = np.flatnonzero(main.places.operators & (host.sequence >= 0) & (host.track == known.windows.track))
    at = np.searchsorted(main.start[rows], host.start[numbered], side="right") - 1
    within = (at >= 0) & (host.start[numbered] < main.end[rows][np.maximum(at, 0)])
    within &= ~matching(known.trace.texts, host.name[numbered], is_node)
    numbers = np.unique(host.sequence[numbered[within]])
    nodes = np.flatnonzero(main.part == Part.BACKWARD)
    nodes = nodes[np.isin(host.sequence[main.rows[nodes]], numbers)]
    return length(union(main.start[nodes], reach(main, nodes)))


def reach(main: MainThread, rows: Int64) -> Int64:
    """Return for operators at positions `rows` their ends, or the start of the next one of the thread where it is near.

    What lies between two calls belongs to the first: Python, the engine of the backward pass, memory that is freed.
    """
    following = np.append(main.start[1:], main.end[-1:])[rows]
    near = (following >= main.end[rows]) & (following - main.end[rows] < NEAR)
    found: Int64 = np.where(near, following, main.end[rows])
    return found


def worst(main: MainThread, rows: Int64) -> tuple[TraceRow, ...]:
    """Return the longest of the operators at positions `rows` of the main thread."""
    return main.places.host_rows(longest(main.places.known.trace.host.duration, main.rows[rows]))


def copies(main: MainThread, apart: Intervals) -> tuple[Copies, ...]:
    """Return the operators that only copy, outside of loader, optimizer and the loops of `apart`, the longest first."""
    places, known = main.places, main.places.known
    host, texts, count = known.trace.host, known.trace.texts, len(main.steps)
    is_copy = matching(texts, host.name, lambda name: _COPY.match(name) is not None) & places.operators
    rows = np.flatnonzero(is_copy & (host.track == known.windows.track))
    rows = rows[steps_of(main, rows)]
    at = np.searchsorted(main.start, host.start[rows], side="right") - 1
    rows = rows[(at >= 0) & np.isin(main.part[np.maximum(at, 0)], (Part.OWN, Part.BACKWARD))]
    rows = rows[~has_above(known.tree.parent, is_copy, rows)]
    rows = rows[~gathers(main, rows) & ~within(apart, host.start[rows]) & ~_own_filling(main, rows)]
    groups: dict[str, list[int]] = {}
    for place in rows.tolist():
        groups.setdefault(_KINDS.get(texts[host.name[place]], "cast"), []).append(place)
    found = []
    for kind, some in groups.items():
        each = np.array(some)
        spent = int(host.duration[each].sum()) / count / 1000
        row = places.host_rows(longest(host.duration, each))
        found.append(Copies(kind, len(each) / count, spent, row))  # type: ignore[arg-type]
    return tuple(sorted(found, key=lambda each: -each.host_us))


def _own_filling(main: MainThread, rows: Int64) -> Mask:
    """Return which of `rows`, outermost copies, an operator that computes makes: the bias in ``addmm``."""
    known, texts = main.places.known, main.places.known.trace.texts
    names = known.trace.host.name
    found = matching(texts, names[rows], lambda name: name == "aten::copy_")
    if found.any():
        computes = matching(texts, names, lambda name: name.startswith("aten::") and _FORM.match(name) is None)
        found[found] = has_above(known.tree.parent, computes, rows[found])
    return found


def within(held: Intervals, times: Int64) -> Mask:
    """Return which of `times` lie in a set of time."""
    if not len(held):
        return np.zeros(len(times), np.bool_)
    at = np.searchsorted(held.start, times, side="right") - 1
    found: Mask = (at >= 0) & (times < held.end[at])
    return found


def gathers(main: MainThread, rows: Int64) -> Mask:
    """Return which rows lie in the node that keeps a gradient: its copy is the gradient."""
    known = main.places.known
    keeps = matching(known.trace.texts, known.trace.host.name, lambda name: "AccumulateGrad" in name)
    return has_above(known.tree.parent, keeps, rows)


def steps_of(main: MainThread, rows: Int64) -> Mask:
    """Return which host rows begin in a complete step."""
    found: Mask = main.steps.of(main.places.known.trace.host.start[rows]) >= 0
    return found


def has_above(parent: Int32, wanted: Mask, rows: Int64) -> Mask:
    """Return which of `rows` lie, at any depth, in a row that is `wanted`."""
    found = np.zeros(len(rows), np.bool_)
    at = parent[rows].copy()
    while len(climbing := np.flatnonzero((at >= 0) & ~found)):
        found[climbing] = wanted[at[climbing]]
        at[climbing] = parent[at[climbing]]
    return found


def double_us(main: MainThread) -> float | None:
    """Return how long operators on float64 tensors take in a step; None where no input types were recorded."""
    trace = main.places.known.trace
    host = trace.host
    typed = np.flatnonzero((host.types >= 0) & (host.shapes >= 0) & of_kinds(host, (HostKind.OPERATOR,)))
    if not len(typed):
        return None
    kinds = np.stack((host.types[typed], host.shapes[typed]))
    pairs, member = np.unique(kinds, axis=1, return_inverse=True)
    doubles = [_is_double(trace.texts[types], trace.texts[shapes]) for types, shapes in pairs.T.tolist()]
    rows = typed[np.array(doubles, np.bool_)[member.reshape(-1)]]
    rows = rows[(host.track[rows] == main.places.known.windows.track) & steps_of(main, rows)]
    return length(union(host.start[rows], host.start[rows] + host.duration[rows])) / len(main.steps) / 1000


def _is_double(types: str, shapes: str) -> bool:
    """Return whether a tensor of the inputs that is no mere number is of double precision."""
    if "double" not in types:
        return False
    pairs = zip(json.loads(types), json.loads(shapes), strict=False)
    return any(kind == "double" and bool(shape) for kind, shape in pairs)


def named(main: MainThread, rows: Int64, count: int = 3) -> tuple[str, ...]:
    """Return the names of the operators at positions `rows` that take most time together."""
    host, texts = main.places.known.trace.host, main.places.known.trace.texts
    spent: Counter[str] = Counter()
    for row in main.rows[rows].tolist():
        spent[texts[host.name[row]]] += int(host.duration[row])
    return tuple(name for name, _ in spent.most_common(count))
