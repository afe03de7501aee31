"""All figures of one trace, assembled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracelock.analysis import kernels, operators
from tracelock.analysis.breakdown import break_down, to_breakdown
from tracelock.analysis.collective_calls import collective_calls
from tracelock.analysis.collectives import collectives
from tracelock.analysis.gpu import DeviceTime, device_times, occupancy, sm_efficiency, utilization
from tracelock.analysis.intervals import join, length, lengths_within
from tracelock.analysis.launches import launches
from tracelock.analysis.links import Links, is_busy, link
from tracelock.analysis.loading import loading
from tracelock.analysis.memory import memory
from tracelock.analysis.model import Analysis, DeviceName, Gpu, Step, StepSummary, TraceSection
from tracelock.analysis.nesting import Tree, nest
from tracelock.analysis.steps import Windows, find_windows
from tracelock.analysis.threads import threads
from tracelock.analysis.transfers import transfers
from tracelock.trace.columns import Int64, Trace


@dataclass(frozen=True)
class Prepared:
    """What every analysis of a trace starts from."""

    trace: Trace
    tree: Tree
    links: Links
    windows: Windows
    times: tuple[DeviceTime, ...]
    origin: int  # the first event of the trace, ns


def prepare(trace: Trace) -> Prepared:
    """Nest the calls of `trace`, link its device rows to them, and find its steps."""
    tree = nest(trace.host)
    links = link(trace, tree)
    return Prepared(trace, tree, links, find_windows(trace, links), tuple(device_times(trace)), first_time(trace))


def first_time(trace: Trace) -> int:
    """Return when the first event of `trace` starts, ns; 0 without events."""
    firsts = [column[0] for column in (trace.host.start, trace.device.start, trace.memory.time) if len(column)]
    return int(min(firsts, default=0))


def analyze(trace: Trace) -> Analysis:
    """Return all figures of `trace`, as docs/definitions.md defines them.

    Parameters
    ----------
    trace
        The columns of one file, see `tracelock.trace.read_trace`.

    """
    known = prepare(trace)
    calls = operators.Calls(trace, known.tree, known.links, known.windows)
    parts = break_down(trace, known.windows.start, known.windows.end)
    memories, unknown = memory(trace, known.tree, known.windows, known.origin)
    communication = collective_calls(trace, known.tree, known.links)
    extent = known.windows.extent() or (0, 0)
    return Analysis(
        trace=_section(trace, known.windows),
        steps=_steps(known, parts),
        step=_summary(known.windows, parts),
        gpus=tuple(gpu for time in known.times if (gpu := _gpu(known, time))),
        operators=operators.by_name(calls, operators.operator_rows(trace)),
        kernels=kernels.by_name(trace),
        transfers=transfers(trace),
        memory=memories,
        unknown=unknown,
        loading=loading(trace, known.tree, known.windows),
        launches=launches(trace, known.links.launch),
        collectives=collectives(trace, communication, known.times, *extent),
        threads=threads(trace, known.tree, communication, *extent),
        labels=operators.by_name(calls, operators.label_rows(trace)),
        runtime=operators.by_name(calls, operators.runtime_rows(trace)),
        kernels_by_operator=kernels.by_operator(trace, known.links),
        tensor_cores=kernels.tensor_cores(trace, known.tree, known.links),
    )


def _section(trace: Trace, windows: Windows) -> TraceSection:
    facts = trace.facts
    return TraceSection(
        file=facts.file,
        bytes=facts.bytes,
        events=facts.events,
        quality=facts.quality,
        warnings=facts.warnings + windows.warnings,
        torch_version=facts.torch_version,
        rank=facts.rank,
        world_size=facts.world_size,
        devices=tuple(DeviceName(device.id, device.name) for device in facts.devices),
    )


def _steps(known: Prepared, parts: Int64) -> tuple[Step, ...]:
    windows = known.windows
    exposed = join(*(time.exposed_communication for time in known.times))
    exposed_us = (lengths_within(exposed, windows.start, windows.end) / 1000).tolist()
    return tuple(
        Step(
            name=windows.names[index],
            start_us=(int(windows.start[index]) - known.origin) / 1000,
            duration_us=int(windows.end[index] - windows.start[index]) / 1000,
            breakdown_us=to_breakdown(parts[index]),
            complete=bool(windows.complete[index]),
            exposed_communication_us=exposed_us[index] if known.times else None,
        )
        for index in range(len(windows))
    )


def _summary(windows: Windows, parts: Int64) -> StepSummary:
    complete = windows.complete
    count = int(complete.sum())
    incomplete = len(windows) - count
    if not count:
        return StepSummary(0, None, None, None, None, windows.source, incomplete)
    lengths = (windows.end - windows.start)[complete]
    total = int(lengths.sum())
    means = to_breakdown(parts[complete].sum(axis=0) / count)
    return StepSummary(
        count=count,
        mean_us=total / count / 1000,
        median_us=float(np.median(lengths)) / 1000,
        breakdown_us=means,
        dataloader_share=means.dataloader * 1000 * count / total if total else None,
        source=windows.source,
        incomplete=incomplete,
    )


def _gpu(known: Prepared, time: DeviceTime) -> Gpu | None:
    """Return the figures of one device over the window of the complete steps; None where it did nothing in there."""
    extent = known.windows.extent()
    if extent is None:
        return None
    inside = time.within(*extent)
    if not len(inside.busy):
        return None
    rows = known.trace.device
    mine = is_busy(rows) & (rows.device == time.device)
    low, high = inside.span
    return Gpu(
        id=time.device,
        span_us=(high - low) / 1000,
        busy_us=length(inside.busy) / 1000,
        idle_us=(high - low - length(inside.busy)) / 1000,
        compute_us=length(inside.compute) / 1000,
        communication_us=length(inside.communication) / 1000,
        memory_us=length(inside.memory) / 1000,
        exposed_communication_us=length(inside.exposed_communication) / 1000,
        utilization=utilization(time, *extent),
        sm_efficiency=sm_efficiency(rows, mine, *extent),
        occupancy_pct=occupancy(rows, mine, *extent),
        idle_causes_us=None,
        window_us=(extent[1] - extent[0]) / 1000,
        linked_share=known.links.share_of_time(rows, mine),
        tensor_core_share=None,
    )
