"""What a trace does not hold, and what its steps may not be: facts that a verdict must know of."""

from __future__ import annotations

from typing import Final

import numpy as np

from tracelock.analysis.links import is_busy
from tracelock.analysis.names import is_loading, matching
from tracelock.analysis.nesting import of_kinds
from tracelock.analysis.prepared import Prepared
from tracelock.analysis.steps import MARKED
from tracelock.trace.columns import HostKind, TraceWarning
from tracelock.trace.order import median

NO_DEVICE_ROWS: Final = "no-device-rows"
TOO_LITTLE: Final = "too-little-to-judge"
MANY_BATCHES: Final = "many-batches-in-a-step"
BATCHES: Final = 8  # gradients are accumulated over a few, seldom over so many
ROWS: Final = 10
WINDOW_NS: Final = 10_000  # the shortest of training steps take hundreds of microseconds
CUDA: Final = (1, 20)  # c10::DeviceType: CUDA, PrivateUse1; HIP is hidden behind CUDA


def hints(known: Prepared) -> tuple[TraceWarning, ...]:
    """Return the warnings that follow from what the trace holds, most serious first."""
    found = (_too_little(known), _no_device_rows(known), _many_batches(known))
    return tuple(warning for warning in found if warning is not None)


def _too_little(known: Prepared) -> TraceWarning | None:
    """Return a warning where no share of anything means much: a handful of rows, one kernel, a window of nothing."""
    trace, windows = known.trace, known.windows
    work = int(is_busy(trace.device).sum())
    host = int((trace.host.kind != HostKind.OVERHEAD).sum()) - (len(windows) if windows.source == MARKED else 0)
    low, high = known.extent
    if host + work >= ROWS and (windows.source == MARKED or high - low >= WINDOW_NS) and (work != 1 or host):
        return None
    rows = f"{host} rows of the host and {work} of devices"
    message = f"{rows} in {(high - low) / 1000:,.3f} µs: too little to judge anything by"
    return TraceWarning(TOO_LITTLE, host + work, message)


def _no_device_rows(known: Prepared) -> TraceWarning | None:
    """Return a warning where the run used a device, by its memory or its runtime, and no work of it was recorded."""
    trace = known.trace
    if is_busy(trace.device).any():
        return None
    memory = int(np.isin(trace.memory.device_type, CUDA).sum())
    launches = matching(trace.texts, trace.host.name, lambda name: "LaunchKernel" in name)
    launched = int((launches & of_kinds(trace.host, (HostKind.RUNTIME, HostKind.DRIVER))).sum())
    if not memory and not launched:
        return None
    what = f"{launched:,} launches" if launched else f"{memory:,} records of a device's memory"
    message = (
        f"{what}, and no kernel: the run used an accelerator whose work was not recorded "
        "(activities=[CPU, CUDA] in torch.profiler.profile; one profiler at a time can use CUPTI)"
    )
    return TraceWarning(NO_DEVICE_ROWS, launched or memory, message)


def _many_batches(known: Prepared) -> TraceWarning | None:
    """Return a hint where each step loads so many batches that `step()` may be missing from the loop."""
    trace, windows = known.trace, known.windows
    if windows.source != MARKED or not windows.complete.any():
        return None
    rows = matching(trace.texts, trace.host.name, is_loading) & (trace.host.track == windows.track)
    begun = trace.host.start[rows]
    counts = np.searchsorted(begun, windows.host_end) - np.searchsorted(begun, windows.host_start)
    batches = int(median(counts[windows.complete]))
    if batches < BATCHES:
        return None
    message = f"a step holds {batches} batches: profiler.step() may be missing from the loop (or gradients accumulate)"
    return TraceWarning(MANY_BATCHES, batches, message)
