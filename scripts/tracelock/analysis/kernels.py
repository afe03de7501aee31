"""What kernels cost: by name, and by the operator that launched them."""

from __future__ import annotations

import numpy as np

from tracelock.analysis.groups import group
from tracelock.analysis.intervals import Mask
from tracelock.analysis.links import Links
from tracelock.analysis.model import Kernel, KernelOfOperator, TensorCores
from tracelock.analysis.names import matching
from tracelock.analysis.nesting import Tree
from tracelock.analysis.tensor_cores import is_eligible, uses_tensor_cores
from tracelock.trace.columns import DeviceKind, Int64, Trace

MOST_UNTOLD = 0.1  # of the kernels' time: beyond it no share is told


def _kernels(trace: Trace, chosen: Mask) -> Int64:
    return np.flatnonzero(chosen & (trace.device.kind == DeviceKind.KERNEL))


def by_name(trace: Trace, chosen: Mask) -> tuple[Kernel, ...]:
    """Return the kernels among the `chosen` device rows by name, most expensive first; microseconds."""
    rows = _kernels(trace, chosen)
    duration = trace.device.duration[rows]
    groups = group(trace.device.name[rows])
    total, least, most = groups.total(duration), groups.least(duration), groups.most(duration)
    return tuple(
        Kernel(
            name=(name := _text(trace, int(groups.keys[0][each]))),
            calls=int(groups.counts[each]),
            total_us=int(total[each]) / 1000,
            mean_us=int(total[each]) / int(groups.counts[each]) / 1000,
            min_us=int(least[each]) / 1000,
            max_us=int(most[each]) / 1000,
            tensor_cores=uses_tensor_cores(name),
        )
        for each in np.argsort(-total, kind="stable")
    )


def by_operator(trace: Trace, links: Links, chosen: Mask, top: int) -> tuple[tuple[KernelOfOperator, ...], int]:
    """Return the kernels among the `chosen` device rows by name and launching operator.

    The `top` most expensive ones in order, and how many more there are.
    """
    rows = _kernels(trace, chosen)
    operator = links.operator[rows]
    names = np.where(operator >= 0, trace.host.name[operator], -1) if len(trace.host) else operator
    groups = group(trace.device.name[rows], names)
    total = groups.total(trace.device.duration[rows])
    order = np.argsort(-total, kind="stable")[:top].tolist()
    found = tuple(
        KernelOfOperator(
            kernel=_text(trace, int(groups.keys[0][each])),
            operator=_text(trace, int(groups.keys[1][each])) or None,
            calls=int(groups.counts[each]),
            total_us=int(total[each]) / 1000,
        )
        for each in order
    )
    return found, len(groups) - len(found)


def _text(trace: Trace, identifier: int) -> str:
    return trace.texts[identifier] if identifier >= 0 else ""


def tensor_cores(trace: Trace, tree: Tree, links: Links, chosen: Mask) -> TensorCores | None:
    """Return how much of the time of the kernels among the `chosen` device rows (their sum) used tensor cores,
    and how much could; None without kernels.

    Eligible is what was launched inside an operator that multiplies matrices or convolves.
    """
    rows = _kernels(trace, chosen)
    duration = trace.device.duration[rows]
    total = int(duration.sum())
    if not total:
        return None
    names = trace.device.name[rows]
    different, place = np.unique(names, return_inverse=True)
    told = [uses_tensor_cores(_text(trace, name)) for name in different.tolist()]
    used = np.array([each is True for each in told], np.bool_)[place]
    untold = np.array([each is None for each in told], np.bool_)[place]
    eligible = _inside_eligible(trace, tree, links, rows)
    linked = links.operator[rows] >= 0
    return TensorCores(
        used_share=_known_share(duration, used, untold, np.ones(len(rows), np.bool_)),
        untold_share=int(duration[untold].sum()) / total,
        eligible_share=int(duration[eligible].sum()) / total if linked.any() else None,
        used_share_of_eligible=_known_share(duration, used, untold, eligible),
    )


def _known_share(duration: Int64, used: Mask, untold: Mask, whole: Mask) -> float | None:
    """Return the share of `used`, None where names that do not say could make it a wrong one."""
    if (_share(duration, untold & whole, whole) or 0.0) > MOST_UNTOLD:
        return None
    return _share(duration, used & whole, whole)


def why_unknown(cores: TensorCores) -> str:
    """Return why the share of tensor cores is not known, for a person."""
    return f"the names of kernels with {cores.untold_share:.0%} of the time do not say whether they use tensor cores"


def unknown(cores: TensorCores | None) -> dict[str, str]:
    """Return why shares of tensor cores are unknown, by key path."""
    if cores is None or cores.used_share is not None:
        return {}
    return {"tensor_cores.used_share": why_unknown(cores)}


def _share(duration: Int64, part: Mask, whole: Mask) -> float | None:
    total = int(duration[whole].sum())
    return int(duration[part].sum()) / total if total else None


def _inside_eligible(trace: Trace, tree: Tree, links: Links, rows: Int64) -> Mask:
    """Return which kernels were launched inside an eligible operator, at any depth."""
    eligible_call = matching(trace.texts, trace.host.name, is_eligible)
    at = links.caller[rows].copy()
    climbing = np.flatnonzero(at >= 0)
    while len(climbing := climbing[~eligible_call[at[climbing]]]):
        at[climbing] = tree.parent[at[climbing]]
        climbing = climbing[at[climbing] >= 0]
    return at >= 0
