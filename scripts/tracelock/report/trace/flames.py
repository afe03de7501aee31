"""The flame graphs of a page: operators by host and by device time, and Python frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracelock.analysis.flames import Flame, flame
from tracelock.analysis.links import is_busy
from tracelock.analysis.names import is_step, matching
from tracelock.analysis.nesting import nest, of_kinds
from tracelock.analysis.prepared import Prepared
from tracelock.report.trace.words import clipped
from tracelock.trace.columns import HostKind, Int64

MOST = 3000  # nodes of one graph


def flames(known: Prepared) -> list[dict[str, Any]]:
    """Return the flame graphs of a trace; those of which nothing was recorded say why."""
    return [
        _graph(known, "operators, time on the host", flame_of(known, "host", MOST), "no operators"),
        _graph(
            known,
            "operators, time on the device",
            flame_of(known, "device", MOST),
            "no device work is linked to operators",
        ),
        _graph(
            known,
            "Python, time on the host",
            flame_of(known, "python", MOST),
            "no Python frames were recorded (with_stack=True)",
        ),
    ]


def flame_of(known: Prepared, of: str, most: int) -> Flame:
    """Return the flame graph of operators by ``host`` or ``device`` time, or of ``python`` frames."""
    trace = known.trace
    if of == "python":
        frames = of_kinds(trace.host, (HostKind.PYTHON,)) & known.host
        return flame(trace, nest(trace.host, (HostKind.PYTHON,)), frames, most=most)
    steps = matching(trace.texts, trace.host.name, is_step)
    called = of_kinds(trace.host, (HostKind.OPERATOR, HostKind.ANNOTATION, HostKind.RUNTIME)) & known.host & ~steps
    return flame(trace, known.tree, called, _launched(known) if of == "device" else None, most)


def _launched(known: Prepared) -> Int64:
    """Return the device time that each host row launched itself, ns; shape (host,)."""
    device = known.trace.device
    rows = np.flatnonzero(is_busy(device) & known.device & (known.links.caller >= 0))
    weights = np.zeros(len(known.trace.host), np.int64)
    np.add.at(weights, known.links.caller[rows], device.duration[rows])
    return weights


def _graph(known: Prepared, label: str, found: Flame, why: str) -> dict[str, Any]:
    distinct, names = np.unique(found.name, return_inverse=True)
    return {
        "label": label + (f" ({found.left_out:,} paths are too short to be drawn)" if found.left_out else ""),
        "texts": ["(no name)" if text < 0 else clipped(known.trace.texts[text]) for text in distinct.tolist()],
        "name": names.reshape(-1).tolist(),
        "parent": found.parent.tolist(),
        "total": [round(each / 1000, 3) for each in found.total.tolist()],
        "calls": found.calls.tolist(),
        "why": "" if len(found) else why,
    }
