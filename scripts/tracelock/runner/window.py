"""The profiled window after the timed steps, and the traces that come of it."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, schedule

from tracelock.runner.loop import Loop, Steps
from tracelock.runner.protocol import Profiling

MB = 1_000_000
TRACE = "trace.json.gz"


@dataclass
class Window:
    """What was recorded.

    Parameters
    ----------
    step_us
        Host time of each recorded step.
    queued_us
        Of each, how long its thread waited for a core, or None where the system does not tell.
    device_step_us
        Device time of each recorded step, or None without a GPU.
    traces
        Files, in order of the cycles.
    stopped_by
        The bound that cut the window or its trace, or None.
    """

    step_us: list[float] = field(default_factory=list)
    queued_us: list[float] | None = None
    device_step_us: list[float] | None = None
    traces: list[Path] = field(default_factory=list)
    stopped_by: str | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def trace_bytes(self) -> int:
        """Size of the largest trace."""
        return max((trace.stat().st_size for trace in self.traces), default=0)


def record_window(loop: Loop, plan: Profiling, folder: Path, max_trace_mb: float | None) -> Window:
    """Run the profiled window and write its traces to `folder`.

    A trace beyond `max_trace_mb` is deleted, and the window is repeated once with as many active steps as should
    fit; if that is too large as well, there is no trace. Either way the result says so.
    """
    window = _record(loop, plan, folder)
    limit = None if max_trace_mb is None else max_trace_mb * MB
    if limit is None or window.trace_bytes <= limit:
        return window
    fitting = int(0.9 * plan.active * limit / window.trace_bytes)
    warning = f"a trace of {plan.active} steps has {window.trace_bytes / MB:.1f} MB, over max_trace_mb {max_trace_mb:g}"
    _discard(window)
    if fitting:
        window = _record(loop, replace(plan, active=fitting, repeat=1), folder)
        warning += f"; recorded {fitting} instead"
        if window.trace_bytes > limit:
            warning += f", which has {window.trace_bytes / MB:.1f} MB"
            _discard(window)
    window.stopped_by = "max_trace_mb"
    window.warnings.append(warning)
    return window


def _discard(window: Window) -> None:
    for trace in window.traces:
        trace.unlink()
    window.traces = []


def _record(loop: Loop, plan: Profiling, folder: Path) -> Window:
    """Run one window over all its cycles."""
    window = Window()
    with _profiler(plan, _trace_writer(window, folder)) as profiler:
        steps = loop.run(plan.steps, after=profiler.step)
    window.stopped_by = steps.stopped_by
    active = [number for number in range(len(steps.step_ns)) if number % plan.cycle >= plan.wait + plan.warmup]
    _keep(window, steps, active)
    return window


def _keep(window: Window, steps: Steps, active: list[int]) -> None:
    """Keep the times of the recorded steps."""
    device_us, queued_us = steps.device_us(), steps.queued_us()
    window.step_us = [steps.step_ns[number] / 1000 for number in active]
    window.queued_us = queued_us and [queued_us[number] for number in active]
    window.device_step_us = device_us and [device_us[number] for number in active]


def _profiler(plan: Profiling, on_trace_ready: Callable[[profile], None]) -> profile:
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * torch.cuda.is_available()
    return profile(
        activities=activities,
        schedule=schedule(wait=plan.wait, warmup=plan.warmup, active=plan.active, repeat=plan.repeat),
        on_trace_ready=on_trace_ready,
        record_shapes=plan.record_shapes,
        profile_memory=plan.profile_memory,
        with_stack=plan.with_stack,
    )


def _trace_writer(window: Window, folder: Path) -> Callable[[profile], None]:
    """Return a handler that writes trace.json.gz for the first cycle, trace.2.json.gz for the second, and so on."""

    def write(profiler: profile) -> None:
        number = len(window.traces) + 1
        path = folder / (TRACE if number == 1 else f"trace.{number}.json.gz")
        # Compressed here: PyTorch would put its uncompressed file where a killed run leaves it for ever.
        plain = folder / "trace.json"
        profiler.export_chrome_trace(str(plain))
        with (
            plain.open("rb") as source,
            path.open("wb") as raw,
            gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0) as target,
        ):
            shutil.copyfileobj(source, target, 1 << 20)
        plain.unlink()
        window.traces.append(path)

    return write
