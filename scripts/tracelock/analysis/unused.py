"""Work whose results nothing uses, or that is done twice; told by the sequence numbers that join both passes."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from tracelock.analysis.intervals import EMPTY, Intervals, Mask, length, union
from tracelock.analysis.mainthread import MainThread, Part
from tracelock.analysis.names import matching
from tracelock.analysis.needless import named, reach, steps_of, within, worst
from tracelock.analysis.nesting import has_above, of_kinds
from tracelock.analysis.on_device import device_ns
from tracelock.analysis.places import longest
from tracelock.analysis.recurrence import period
from tracelock.analysis.tensor_cores import is_eligible
from tracelock.analysis.work import Unused, UnusedKind
from tracelock.trace.columns import HostKind, Int64

# What only counts, checks or reads: no gradient goes through it.
_STATISTICS: Final = re.compile(
    r"aten::(histc|histogram\w*|bincount|\w*quantile|median|nanmedian|mode|std|var|std_mean|var_mean|isnan|isinf|isfinite"
    r"|_is_any_true|_is_all_true|any|all|is_nonzero|item|_local_scalar_dense|allclose|isclose|equal|unique\w*|_unique2"
    r"|argmax|argmin|count_nonzero|nonzero|linalg_vector_norm|norm|topk|sort|argsort|eq|gt|lt|ge|le|ne)$"
)
# Nothing can be differentiated through these; they carry the sequence number of what comes next.
_FLAT: Final = re.compile(
    r"aten::(histc|histogram\w*|bincount|isnan|isinf|isfinite|_is_any_true|_is_all_true|any|all|is_nonzero|item"
    r"|_local_scalar_dense|allclose|isclose|equal|argmax|argmin|argsort|count_nonzero|nonzero|eq|gt|lt|ge|le|ne)$"
)
_TOGETHER: Final = re.compile(r"_foreach_|_fused_")  # in the best form already
# Copies have a cause of their own; collectives and updates that take many tensors at once are no idle work.
_ELSEWHERE: Final = re.compile(
    r"^aten::(clone|contiguous|copy_|_to_copy|to)$|^(c10d|gloo|nccl|record_param)|_foreach_|_fused_"
)
_LAYER: Final = re.compile(
    r"aten::(linear|conv[123]d|lstm|gru|scaled_dot_product_attention|layer_norm|batch_norm|group_norm|embedding)$"
)
_CHECK: Final = re.compile(r"aten::(isnan|_is_any_true|any|item)$")


def unused(main: MainThread, apart: Intervals) -> tuple[Unused, ...]:
    """Return the work that nothing uses, by kind, the longest first; statistics in the loops of `apart` are theirs."""
    kinds: dict[UnusedKind, Unused | None] = {
        "repeated-backward": _again(main),
        "recomputation": _inside_nodes(main, "recomputation", _LAYER),
        "anomaly": _inside_nodes(main, "anomaly", _CHECK),
    }
    if main.tracked:
        parts: tuple[tuple[UnusedKind, list[Int64]], ...] = _runs(main, apart)
        kinds |= {kind: _spent(main, kind, rows) for kind, rows in parts}
    return tuple(sorted((each for each in kinds.values() if each), key=lambda each: -each.host_us))


def _runs(main: MainThread, apart: Intervals) -> tuple[tuple[UnusedKind, list[Int64]], ...]:
    """Return stretches of operators in a row that no backward pass needs: with layers, mere statistics, all others."""
    host, texts = main.places.known.trace.host, main.places.known.trace.texts
    names = host.name[main.rows]
    layer = matching(texts, names, is_eligible)
    counts = matching(texts, names, lambda name: _STATISTICS.match(name) is not None)
    counts |= _after_backward(main) & ~matching(texts, names, lambda name: _TOGETHER.search(name) is not None)
    counts &= ~within(apart, main.start)
    flat = matching(texts, names, lambda name: _FLAT.match(name) is not None)
    own = (main.part == Part.OWN) & (~main.used | flat) & _trains(main)
    breaks = np.flatnonzero((np.diff(own.astype(np.int8)) != 0) | (np.diff(main.step) != 0)) + 1
    parts = [part for part in np.split(np.arange(len(main)), breaks) if len(part) and own[part[0]]]
    layers = [part for part in parts if layer[part].any()]
    rest = [part[counts[part]] for part in parts if not layer[part].any()]
    beside = (
        ~counts & ~within(apart, main.start) & ~matching(texts, names, lambda name: _ELSEWHERE.search(name) is not None)
    )
    others = [part[beside[part]] for part in parts if not layer[part].any()]
    return ("forward", layers), ("statistics", _filled(rest)), ("beside", _filled(others))


def _filled(parts: list[Int64]) -> list[Int64]:
    return [part for part in parts if len(part)]


def _trains(main: MainThread) -> Mask:
    """Return which operators lie in a step that has a backward pass: without one, forward is all there is."""
    trains = np.zeros(len(main.steps), np.bool_)
    nodes = main.nodes
    trains[main.steps.of(main.places.known.trace.host.start[nodes])] = True
    return trains[main.step]


def _after_backward(main: MainThread) -> Mask:
    """Return which operators begin after the last node of their step's backward pass."""
    host, last, nodes = main.places.known.trace.host, np.zeros(len(main.steps), np.int64), main.nodes
    np.maximum.at(last, main.steps.of(host.start[nodes]), host.start[nodes] + host.duration[nodes])
    found: Mask = (last[main.step] > 0) & (main.start >= last[main.step])
    return found


def _spent(main: MainThread, kind: UnusedKind, parts: list[Int64]) -> Unused | None:
    """Return stretches as one: each from its first operator to the end of its last."""
    if not parts:
        return None
    rows = np.concatenate(parts)
    covered = union(main.start[rows], reach(main, rows))
    every, part = _how_often(main, np.unique(main.step[rows]))
    return Unused(
        kind=kind,
        calls_per_step=len(rows) * part,
        steps=len(np.unique(main.step[rows])),
        host_us=length(covered) * part / 1000,
        device_us=device_ns(main, main.rows[rows]) * part / 1000,
        names=named(main, rows),
        rows=worst(main, rows),
        every=every,
    )


def _how_often(main: MainThread, steps: Int64) -> tuple[int | None, float]:
    """Return k where `steps` come every k-th step, and by what a sum over them is multiplied to be that of a step.

    Two of eight steps, three apart, are a third of all and not a quarter.
    """
    every = period(steps.tolist(), len(main.steps))
    return every, 1 / len(main.steps) if every is None else 1 / (every * len(steps))


def _again(main: MainThread) -> Unused | None:
    """Return the nodes of the backward pass that ran before in the same step."""
    host, nodes = main.places.known.trace.host, main.nodes
    nodes = nodes[host.sequence[nodes] >= 0]
    keys = np.stack((main.steps.of(host.start[nodes]), host.sequence[nodes], host.name[nodes]))
    _, first = np.unique(keys, axis=1, return_index=True) if len(nodes) else (None, np.empty(0, np.intp))
    again = np.ones(len(nodes), np.bool_)
    again[first] = False
    twice = nodes[again]
    if not len(twice):
        return None
    if (host.track[twice] != main.places.known.windows.track).any():  # the backward pass of a device has its own thread
        return _directly(main, "repeated-backward", twice, None)
    return _spent(main, "repeated-backward", [np.flatnonzero(np.isin(main.rows, twice))])


def _inside_nodes(main: MainThread, kind: UnusedKind, pattern: re.Pattern[str]) -> Unused | None:
    """Return the outermost operators of a kind inside nodes of the backward pass."""
    known, host = main.places.known, main.places.known.trace.host
    wanted = of_kinds(host, (HostKind.OPERATOR,))
    wanted &= matching(known.trace.texts, host.name, lambda name: pattern.match(name) is not None)
    rows = np.flatnonzero(wanted)
    rows = rows[steps_of(main, rows)]
    is_node = np.zeros(len(host), np.bool_)
    is_node[main.nodes] = True
    if kind == "anomaly":
        rows = rows[is_node[np.maximum(known.tree.parent[rows], 0)] & (known.tree.parent[rows] >= 0)]
    else:
        rows = rows[has_above(known.tree.parent, is_node, rows) & ~has_above(known.tree.parent, wanted, rows)]
    return _directly(main, kind, rows, _recomputed(main, rows) if kind == "recomputation" else None)


def _recomputed(main: MainThread, rows: Int64) -> Intervals:
    """Return in each node the time from its begin to the end of the last of `rows`: what lies between belongs to it."""
    host = main.places.known.trace.host
    if not len(rows):
        return EMPTY
    nodes = main.nodes
    node = nodes[np.searchsorted(host.start[nodes], host.start[rows], side="right") - 1]
    _, first = np.unique(node, return_index=True)
    last = np.append(first[1:], len(node)) - 1
    return union(host.start[node[first]], host.start[rows[last]] + host.duration[rows[last]])


def _directly(main: MainThread, kind: UnusedKind, rows: Int64, covered: Intervals | None) -> Unused | None:
    if not len(rows):
        return None
    known, host, count = main.places.known, main.places.known.trace.host, len(main.steps)
    return Unused(
        kind=kind,
        calls_per_step=len(rows) / count,
        steps=len(np.unique(main.steps.of(host.start[rows]))),
        host_us=length(covered or union(host.start[rows], host.start[rows] + host.duration[rows])) / count / 1000,
        device_us=device_ns(main, rows) / count / 1000,
        names=tuple(dict.fromkeys(known.trace.texts[name] for name in host.name[rows].tolist()))[:3],
        rows=main.places.host_rows(longest(host.duration, rows)),
    )
