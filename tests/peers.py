"""Traces as other tools saw them, so that their figures can be compared to the digit.

The tools hold times as 64-bit floats of microseconds. Whole microseconds are exact so; fractional ones are rounded to
a grid that widens with the time itself: 0.25 µs for times of the epoch (1.7e15 µs), 0.001 µs for 4e12 µs. The views
below round start and end as the tools do, and count in units of that grid, on which everything is a whole
number; our analyses then run on those numbers unchanged.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tracelock.analysis.names import is_step, matching
from tracelock.trace import read_trace
from tracelock.trace.columns import DeviceKind, DeviceRows, HostKind, HostRows, Int64, Trace

Rows = TypeVar("Rows", HostRows, DeviceRows)

INTEGER = ("kineto-resnet50-workers0", "kineto-resnet50-workers4", "tutorial-h100-transformer", "switch-a100")
FRACTIONAL = (
    "hta-ns-resolution",
    "hta-nccl",
    "tracelens-h100-qwen",
    "tracelens-mi300-resnet-checkpoint",
    "tracelens-vllm-hipgraph",
)


@dataclass(frozen=True)
class Seen:
    """A trace in units of a grid: `unit` of them make a microsecond."""

    trace: Trace
    unit: int

    def us(self, units: Any) -> Any:
        """Return a number of units, or many, as microseconds."""
        return units / self.unit


@lru_cache(maxsize=4)
def trace_of(shared: Path, name: str) -> Trace:
    """Return a reference trace."""
    return read_trace(shared / "traces" / f"{name}.json.gz")


@lru_cache(maxsize=1)
def peers_of(shared: Path) -> dict[str, Any]:
    """Return what the other tools found, by trace and tool."""
    found: dict[str, Any] = json.loads((shared / "reference" / "peers.json").read_text())
    return found


def as_floats(trace: Trace) -> Seen:
    """Return the trace with start and end rounded to 64-bit floats of microseconds."""
    latest = max(
        (int((rows.start + rows.duration).max()) for rows in (trace.host, trace.device) if len(rows)), default=0
    )
    unit = 2 ** (52 - math.frexp(latest / 1000)[1] + 1)
    return Seen(replace(trace, host=_rounded(trace.host, unit), device=_rounded(trace.device, unit)), unit)


def _rounded(rows: Rows, unit: int) -> Rows:
    start = [begun / 1000 for begun in rows.start.tolist()]
    end = [begun + lasted / 1000 for begun, lasted in zip(start, rows.duration.tolist(), strict=True)]
    return with_times(rows, [int(each * unit) for each in start], [int(each * unit) for each in end])


def as_plugin(trace: Trace) -> Trace:
    """Return the trace as the TensorBoard plugin takes it.

    The device's annotations are among the host's, and calls of the driver are passed over.
    """
    trace = replace(trace, host=chosen(trace.host, trace.host.kind != HostKind.DRIVER))
    labels = chosen(trace.device, trace.device.kind == DeviceKind.ANNOTATION)
    labels = chosen(labels, ~matching(trace.texts, labels.name, is_step))
    columns = {}
    for each in fields(trace.host):
        mine = getattr(trace.host, each.name)
        theirs = getattr(labels, each.name, np.full(len(labels), -1))
        theirs = np.full(len(labels), HostKind.ANNOTATION) if each.name == "kind" else theirs
        columns[each.name] = np.concatenate((mine, theirs.astype(mine.dtype)))
    rows = HostRows(**columns)
    return replace(trace, host=with_times(rows, rows.start, rows.start + rows.duration))


def as_whole_microseconds(trace: Trace) -> Trace:
    """Return the device rows as HTA takes fractional times: start rounded up, end rounded down."""
    start = [begun / 1000 for begun in trace.device.start.tolist()]
    end = [begun + lasted / 1000 for begun, lasted in zip(start, trace.device.duration.tolist(), strict=True)]
    rounded = with_times(trace.device, [math.ceil(each) for each in start], [math.floor(each) for each in end])
    return replace(trace, device=rounded)


def with_times(rows: Rows, start: Sequence[int] | Int64, end: Sequence[int] | Int64) -> Rows:
    """Return the rows with other times, in the order of a table."""
    begun, lasted = np.array(start, np.int64), np.array(end, np.int64) - np.array(start, np.int64)
    order = np.lexsort((-lasted, begun))
    columns = {each.name: getattr(rows, each.name)[order] for each in fields(rows)}
    return type(rows)(**{**columns, "start": begun[order], "duration": lasted[order]})


def chosen(rows: Rows, mask: np.ndarray) -> Rows:
    """Return some of the rows."""
    return type(rows)(**{each.name: getattr(rows, each.name)[mask] for each in fields(rows)})
