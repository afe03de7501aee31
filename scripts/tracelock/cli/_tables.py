"""The tables of one trace: a title and a table for each question that the trace can answer. Here: time."""

from __future__ import annotations

from collections.abc import Iterator

from tracelock.analysis.model import Analysis, Gpu, Kernel, Operator, Step, StepSummary, Transfer
from tracelock.analysis.parts import IDLE_HEADS, STEP_HEADS
from tracelock.cli import _format as fmt
from tracelock.cli._grid import BAR, Section, grid, more
from tracelock.cli._tables_more import doubts, further

CORES = {True: "yes", False: "no", None: fmt.UNKNOWN}
STEP_COLUMNS = 5  # parts of a step that fit beside each other


def sections(found: Analysis, top: int) -> Iterator[Section]:
    """Yield the tables that `found` fills, with `top` rows at most where rows are ranked."""
    if found.step.breakdown_us is not None and found.step.mean_us:
        yield _breakdown(found.step, found.step.mean_us)
    if len(found.steps) > 1:
        yield _steps(found.steps, top)
    for gpu in found.gpus:
        yield _gpu(gpu)
        yield from _idle(gpu, top)
    if found.operators:
        yield _operators("Operators", found.operators, top)
    if found.labels:
        yield _operators("Labelled regions", found.labels, top)
    if found.kernels:
        yield _kernels(found.kernels, top)
    if found.transfers:
        yield "Transfers", grid(("", "calls", "bytes", "time", "bandwidth"), map(_transfer, found.transfers))
    yield from further(found, top)
    yield from doubts(found)


def _breakdown(step: StepSummary, mean_us: float) -> Section:
    parts = [(STEP_HEADS[name], value) for name, value in vars(step.breakdown_us).items() if value > 0]
    rows = [(name, fmt.time(us), fmt.share(us / mean_us), fmt.bar(us / mean_us)) for name, us in parts]
    title = "Where a step goes" if step.source == "ProfilerStep" else "Where the time goes"
    return title, grid(("", "mean", "share", BAR), rows)


def _steps(steps: tuple[Step, ...], top: int) -> Section:
    sums = {name: sum(getattr(each.breakdown_us, name) for each in steps) for name in STEP_HEADS}
    largest = sorted((name for name in STEP_HEADS if sums[name] > 0), key=lambda name: -sums[name])[:STEP_COLUMNS]
    shown = [name for name in STEP_HEADS if name in largest]
    rows = [
        (
            each.name.removeprefix("ProfilerStep#") + ("" if each.complete else " (cut off)"),
            fmt.time(each.duration_us),
            *(fmt.share(getattr(each.breakdown_us, name) / (each.duration_us or 1)) for name in shown),
        )
        for each in steps[:top]
    ]
    return more("Steps", top, len(steps)), grid(("step", "time", *(STEP_HEADS[name] for name in shown)), rows)


def _gpu(gpu: Gpu) -> Section:
    window = gpu.window_us or gpu.span_us
    times = [("busy", gpu.busy_us), ("  computing", gpu.compute_us), ("  memcpy, memset", gpu.memory_us)]
    if gpu.communication_us:
        times += [("  communicating", gpu.communication_us), ("    not hidden", gpu.exposed_communication_us)]
    times.append(("idle between its first and last work", gpu.idle_us))
    shares = [
        ("utilization (time in kernels)", gpu.utilization),
        ("SM efficiency, estimated", gpu.sm_efficiency),
        ("occupancy, estimated", None if gpu.occupancy_pct is None else gpu.occupancy_pct / 100),
        ("tensor cores, of kernel time", gpu.tensor_core_share),
        ("work whose launch is known", gpu.linked_share),
    ]
    rows = [(name, fmt.time(us), fmt.share(us / window if window else None)) for name, us in times]
    rows += [(name, "", fmt.share(value)) for name, value in shares]
    return f"GPU {gpu.id} over {fmt.time(window)}", grid(("", "time", "share"), rows)


def _idle(gpu: Gpu, top: int) -> Iterator[Section]:
    if gpu.idle_causes_us is None or not gpu.idle_us:
        return
    idle = gpu.idle_us
    parts = sorted(vars(gpu.idle_causes_us).items(), key=lambda part: -part[1])
    rows = [(IDLE_HEADS[name], fmt.time(us), fmt.share(us / idle), fmt.bar(us / idle)) for name, us in parts if us > 0]
    yield f"Why GPU {gpu.id} was idle", grid(("", "time", "of idle", BAR), rows)
    if gpu.host_idle:
        named = [(each.name, fmt.time(each.time_us), fmt.share(each.time_us / idle)) for each in gpu.host_idle[:top]]
        yield more("Host code that it waited for", top, len(gpu.host_idle)), grid(("", "time", "of idle"), named)


def _operators(title: str, operators: tuple[Operator, ...], top: int) -> Section:
    device = any(each.self_device_us is not None for each in operators)
    rows = [
        (each.name, fmt.count(each.calls), fmt.time(each.self_cpu_us), fmt.time(each.total_cpu_us))
        + ((fmt.time(each.self_device_us), fmt.time(each.total_device_us)) if device else ())
        for each in operators[:top]
    ]
    columns = ("", "calls", "self CPU", "total CPU", *(("self GPU", "total GPU") if device else ()))
    return more(title, top, len(operators)), grid(columns, rows)


def _kernels(kernels: tuple[Kernel, ...], top: int) -> Section:
    whole = sum(each.total_us for each in kernels)
    rows = [
        (
            fmt.kernel(each.name),
            fmt.count(each.calls),
            fmt.time(each.total_us),
            fmt.share(each.total_us / whole if whole else None),
            fmt.time(each.mean_us),
            fmt.time(each.max_us),
            CORES[each.tensor_cores],
        )
        for each in kernels[:top]
    ]
    columns = ("", "calls", "total", "share", "mean", "max", "TC")
    return more("Kernels (TC: uses tensor cores)", top, len(kernels)), grid(columns, rows)


def _transfer(each: Transfer) -> tuple[str, ...]:
    return (
        f"{each.kind} {each.memory or ''}".strip(),
        fmt.count(each.calls),
        fmt.size(each.bytes),
        fmt.time(each.total_us),
        fmt.rate(None if each.bandwidth_gb_per_s is None else each.bandwidth_gb_per_s * 1e9),
    )
