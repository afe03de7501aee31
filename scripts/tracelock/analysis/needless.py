"""Work of the main thread by what it is for: loops, copies, double precision, results that nothing uses."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tracelock.analysis.costs import TraceRow
from tracelock.analysis.groups import group
from tracelock.analysis.intervals import Intervals, Mask, length, union
from tracelock.analysis.mainthread import MainThread, Part, is_node
from tracelock.analysis.names import matching
from tracelock.analysis.nesting import has_above, of_kinds
from tracelock.analysis.on_device import device_ns, moving
from tracelock.analysis.periods import Run, runs
from tracelock.analysis.places import longest
from tracelock.analysis.tensor_cores import is_eligible
from tracelock.analysis.work import Copies, Loop
from tracelock.trace.columns import HostKind, Int64

# Operators that take a piece of a tensor: a loop over samples or time steps begins with one.
_PIECE: Final = re.compile(r"aten::(select|slice|unbind|narrow|index|index_select|split|chunk|unsqueeze|_unsafe_view)$")
_COPY: Final = re.compile(r"aten::(clone|contiguous|copy_|_to_copy|to)$")
# What stands beside copies in a loop that does nothing else, such as that of copy.deepcopy(state_dict).
_AROUND_COPIES: Final = re.compile(
    r"aten::(detach_?|empty|empty_like|new_empty|empty_strided|new_empty_strided|set_|alias|view|transpose|t|permute"
    r"|resolve_conj|resolve_neg|requires_grad_|lift_fresh)$"
)
# Operators that give a tensor another form, and copy where they have to: what they copy was asked for.
_FORM: Final = re.compile(r"aten::(copy|type_as|reshape|flatten|repeat|expand)$")
_KINDS: Final[dict[str, str]] = {"aten::clone": "clone", "aten::contiguous": "contiguous", "aten::copy_": "copy"}
NEAR = 100_000  # ns
SHORT_TURN = 1_000_000  # ns: longer turns are work, not dispatch


@dataclass(frozen=True)
class Repeated:
    """What repeats in the user's own code, by its turn: names of operators, and positions in the main thread."""

    work: dict[tuple[int, ...], list[Int64]]
    copying: dict[tuple[int, ...], list[Int64]]  # turns that do nothing but copy
    spans: Intervals  # of both
    copying_spans: Intervals


def repeated(main: MainThread) -> Repeated:
    """Return the loops of the user's own code; those that do nothing but copy (casts, a model's copy) apart."""
    own = np.flatnonzero(main.part == Part.OWN)
    names = main.places.known.trace.host.name[main.rows[own]].copy()
    # Nothing goes on from one step to the next, or across a backward pass or an update.
    breaks = np.flatnonzero((np.diff(own) > 1) | (np.diff(main.step[own]) > 0)) + 1
    found: tuple[dict[tuple[int, ...], list[Int64]], ...] = ({}, {})
    spans: tuple[list[tuple[int, int]], ...] = ([], [])
    for part in np.split(np.arange(len(own)), breaks):
        for run in runs(names[part]):
            rows = own[part[run.first : run.last]]
            if _is_loop(main, rows, run):
                turn = _turn(names[part[run.first : run.first + run.period]].tolist())
                copying = _only_copies([main.places.known.trace.texts[name] for name in turn])
                found[copying].setdefault(turn, []).append(rows)
                spans[copying].append((int(main.start[rows[0]]), int(main.end[rows].max())))
    return Repeated(found[0], found[1], _union([*spans[0], *spans[1]]), _union(spans[1]))


def _union(spans: Sequence[tuple[int, int]]) -> Intervals:
    low, high = np.array(spans, np.int64).reshape(-1, 2).T
    return union(low, high)


def _only_copies(turn: Sequence[str]) -> bool:
    copying = any(_COPY.match(name) for name in turn)
    return copying and all(_COPY.match(name) or _AROUND_COPIES.match(name) for name in turn)


def loops(main: MainThread, found: Repeated) -> tuple[Loop, ...]:
    """Return the loops that do more than copy, the longest first."""
    return tuple(sorted((_loop(main, *each) for each in found.work.items()), key=lambda loop: -loop.host_us))


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


def copies(main: MainThread, repeats: Repeated) -> tuple[Copies, ...]:
    """Return the operators that only copy, outside of loader, optimizer and loops that do more, the longest first.

    Of loops that do nothing else all of the time counts, from the first operator to the last.
    """
    places, known = main.places, main.places.known
    host, texts, count = known.trace.host, known.trace.texts, len(main.steps)
    is_copy = matching(texts, host.name, lambda name: _COPY.match(name) is not None) & places.operators
    rows = np.flatnonzero(is_copy & (host.track == known.windows.track))
    rows = rows[steps_of(main, rows)]
    at = np.searchsorted(main.start, host.start[rows], side="right") - 1
    rows = rows[(at >= 0) & np.isin(main.part[np.maximum(at, 0)], (Part.OWN, Part.BACKWARD))]
    rows = rows[~has_above(known.tree.parent, is_copy, rows)]
    rows = rows[~moving(main)[rows]]
    looped = within(repeats.copying_spans, host.start[rows])
    kept = ~gathers(main, rows) & (looped | ~within(repeats.spans, host.start[rows])) & ~_own_filling(main, rows)
    rows, looped = rows[kept], looped[kept]
    groups: dict[str, list[int]] = {}
    for place in rows.tolist():
        groups.setdefault(_KINDS.get(texts[host.name[place]], "cast"), []).append(place)
    around = length(repeats.copying_spans) - int(host.duration[rows[looped]].sum())
    looped_most = max(groups, key=lambda kind: int(looped[np.isin(rows, groups[kind])].sum()), default=None)
    found = []
    for kind, some in groups.items():
        each = np.array(some)
        spent = int(host.duration[each].sum()) + (max(0, around) if kind == looped_most else 0)
        row = places.host_rows(longest(host.duration, each))
        worked = device_ns(main, each) / count / 1000
        found.append(Copies(kind, len(each) / count, spent / count / 1000, row, worked))  # type: ignore[arg-type]
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


def double_us(main: MainThread) -> tuple[float | None, float]:
    """Return how long operators on float64 tensors take in a step, on the main thread and on devices; µs.

    None where no input types were recorded.
    """
    trace = main.places.known.trace
    host = trace.host
    typed = np.flatnonzero((host.types >= 0) & (host.shapes >= 0) & of_kinds(host, (HostKind.OPERATOR,)))
    if not len(typed):
        return None, 0.0
    alike = group(host.types[typed], host.shapes[typed])
    pairs = zip(*(key.tolist() for key in alike.keys), strict=True)
    doubles = [_is_double(trace.texts[types], trace.texts[shapes]) for types, shapes in pairs]
    rows = typed[np.array(doubles, np.bool_)[alike.member]]
    rows, count = rows[steps_of(main, rows)], 1000 * len(main.steps)
    on_device = device_ns(main, rows) / count
    rows = rows[host.track[rows] == main.places.known.windows.track]
    return length(union(host.start[rows], host.start[rows] + host.duration[rows])) / count, on_device


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
