"""All figures of one trace, assembled."""

from __future__ import annotations

from tracelock.analysis import gpus, kernels, operators, stacks
from tracelock.analysis.bounds import costs
from tracelock.analysis.breakdown import break_down, to_breakdown
from tracelock.analysis.collective_calls import collective_calls
from tracelock.analysis.collectives import collectives
from tracelock.analysis.completeness import lost_device_rows
from tracelock.analysis.hints import hints
from tracelock.analysis.intervals import join, lengths_within
from tracelock.analysis.launches import launches
from tracelock.analysis.loading import loading
from tracelock.analysis.memory import memory
from tracelock.analysis.model import Analysis, DeviceName, Step, StepSummary, TraceSection
from tracelock.analysis.owners import allocated_by_row
from tracelock.analysis.parts import STEP
from tracelock.analysis.prepared import Prepared, prepare
from tracelock.analysis.steps import Windows
from tracelock.analysis.threads import threads
from tracelock.analysis.transfers import transfers
from tracelock.analysis.working import work
from tracelock.trace import release
from tracelock.trace.columns import Int64, Trace
from tracelock.trace.order import median

LISTED = 1000  # groups of operators by shape, and of kernels by operator, most expensive first
STACKS = 200  # places in the code, whose texts are long


def analyze(trace: Trace) -> Analysis:
    """Return all figures of `trace`, as docs/definitions.md defines them.

    Parameters
    ----------
    trace
        The columns of one file, see `tracelock.trace.read_trace`.

    """
    return analyze_prepared(prepare(trace))


def analyze_prepared(known: Prepared) -> Analysis:
    """Return all figures of a trace that is prepared already."""
    trace = known.trace
    allocated = allocated_by_row(trace, known.tree) if len(trace.memory) else None
    calls = operators.Calls(trace, known.tree, known.links, known.windows, allocated)
    release(trace)  # of a trace on disk: what `prepare` looked at
    parts = break_down(trace, known.windows.start, known.windows.end)
    release(trace)
    devices = gpus.gpus(known)
    memories, unknown_memory = memory(trace, known.tree, known.windows, known.origin)
    communication = collective_calls(trace, known.tree, known.links)
    called = operators.operator_rows(trace) & known.host
    shapes, more_shapes = operators.by_shape(calls, called, LISTED)
    places, more_places = operators.by_stack(calls, called, STACKS) if stacks.has_stacks(trace) else ((), 0)
    owned, more_owned = kernels.by_operator(trace, known.links, known.device, LISTED)
    more = {"operators_by_shape": more_shapes, "operators_by_stack": more_places, "kernels_by_operator": more_owned}
    cores = kernels.tensor_cores(trace, known.tree, known.links, known.device)
    return Analysis(
        trace=_section(known),
        steps=_steps(known, parts),
        step=_summary(known.windows, parts),
        gpus=devices,
        operators=operators.by_name(calls, called),
        kernels=kernels.by_name(trace, known.device),
        transfers=transfers(trace, known.device),
        memory=memories,
        unknown=_unknown(known) | gpus.unknown(known, devices) | unknown_memory | kernels.unknown(cores),
        loading=loading(trace, known.tree, known.windows, known.host),
        launches=launches(trace, known.links.launch, known.device),
        collectives=collectives(trace, communication, known.times, *known.extent),
        threads=threads(trace, known.tree, communication, *known.extent),
        labels=operators.by_name(calls, operators.label_rows(trace) & known.host),
        runtime=operators.by_name(calls, operators.runtime_rows(trace) & known.host),
        operators_by_shape=shapes,
        operators_by_stack=places,
        kernels_by_operator=owned,
        left_out={table: rows for table, rows in more.items() if rows},
        tensor_cores=cores,
        costs=costs(known) if len(trace.host) else None,
        work=work(known) if len(trace.host) else None,
    )


def _section(known: Prepared) -> TraceSection:
    facts = known.trace.facts
    return TraceSection(
        file=facts.file,
        bytes=facts.bytes,
        events=facts.events,
        quality=facts.quality,
        warnings=facts.warnings + known.windows.warnings + hints(known),
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
            breakdown_us=to_breakdown(parts[index].tolist()),
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
    sums = parts[complete].sum(axis=0).tolist()
    loading = sums[[part.key for part in STEP].index("dataloader")]
    return StepSummary(
        count=count,
        mean_us=total / count / 1000,
        median_us=median(lengths) / 1000,
        breakdown_us=to_breakdown([each / count for each in sums]),
        dataloader_share=loading / total if total else None,
        source=windows.source,
        incomplete=incomplete,
    )


def _unknown(known: Prepared) -> dict[str, str]:
    """Return why figures are unknown, by key path."""
    trace, why = known.trace, {}
    if not known.windows.complete.any():
        cut = (
            "the file was cut, and no step of it is whole" if trace.facts.quality == "partial" else "the trace is empty"
        )
        for key in ("mean_us", "median_us", "breakdown_us", "dataloader_share"):
            why[f"step.{key}"] = cut
    if lost_device_rows(trace):
        why["gpus"] = why["kernels"] = why["transfers"] = "the file was cut before its device rows"
    elif trace.facts.quality == "partial":
        tables = "sums over the run are not known, as the file was cut: these are sums over "
        why["operators"] = tables + ("its complete steps" if known.restricted else "what could be read")
    if not len(trace.host):
        why["costs"] = "the trace has no host rows"
    if not len(trace.device):
        why["operators[].self_device_us"] = why["operators[].total_device_us"] = "the trace has no device rows"
    if not len(trace.memory):
        why["operators[].allocated_bytes"] = "the trace has no memory records (profile_memory)"
    if not (trace.host.shapes >= 0).any():
        why["operators_by_shape"] = "the trace has no input shapes (record_shapes)"
    if not stacks.has_stacks(trace):
        why["operators_by_stack"] = "the trace has no call stacks (with_stack)"
    return why
