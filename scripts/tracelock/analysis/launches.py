"""From the launch call to the start on the device: delay, queue, short kernels.

Definitions like those of HTA's "CUDA kernel launch statistics" and "queue length", but on exact nanoseconds, and the
mean of a queue is taken over time, not over its points. Rows of a graph launch have no delay of their own (one call
starts them all) and stand in no queue: they are counted apart.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tracelock.analysis.intervals import Mask
from tracelock.analysis.links import is_busy
from tracelock.analysis.sections import Launches, Queue
from tracelock.trace.columns import Int32, Int64, Trace
from tracelock.trace.order import median

SLOW_CALL_NS = 50_000  # HTA: runtime_cutoff
SLOW_START_NS = 100_000  # HTA: launch_delay_cutoff
TINY_NS = 10_000  # TraceLens: short kernel


def launches(trace: Trace, launch: Int32, chosen: Mask) -> tuple[Launches, ...]:
    """Return the launch figures of each device that has rows.

    Parameters
    ----------
    launch
        Position of the launch in the host rows for each device row, -1 where it is not known, shape (n,).
    chosen
        The device rows to look at, shape (n,).

    """
    busy = is_busy(trace.device) & chosen
    devices = np.unique(trace.device.device[busy])
    return tuple(
        _describe(trace, launch, np.flatnonzero(busy & (trace.device.device == one)), int(one)) for one in devices
    )


def _describe(trace: Trace, launch: Int32, rows: npt.NDArray[np.intp], device: int) -> Launches:
    known = rows[launch[rows] >= 0]
    single = known[_launched_alone(launch[known])]
    host, calls = trace.host, launch[single]
    start, duration = trace.device.start[single], trace.device.duration[single]
    call_us = host.duration[calls]
    delay = np.maximum(0, start - (host.start[calls] + call_us))
    free = delay[_found_free(trace, launch, rows, single)]
    return Launches(
        device=device,
        linked=len(known),
        unlinked=len(rows) - len(known),
        graph_rows=len(known) - len(single),
        call_us=_us(call_us.mean()) if len(single) else None,
        delay_mean_us=_us(delay.mean()) if len(single) else None,
        delay_median_us=_us(median(delay)) if len(single) else None,
        delay_p95_us=_us(np.percentile(delay, 95)) if len(single) else None,
        delay_max_us=_us(delay.max()) if len(single) else None,
        free_start_us=_us(median(free)) if len(free) else None,
        short=int((duration < call_us).sum()),
        tiny=int((trace.device.duration[rows] < TINY_NS).sum()),
        slow_calls=int((call_us > SLOW_CALL_NS).sum()),
        slow_starts=int((delay > SLOW_START_NS).sum()),
        queues=tuple(_queues(trace, launch, single)),
    )


def _us(nanoseconds: float | np.floating | np.integer) -> float:
    return float(nanoseconds) / 1000


def _launched_alone(calls: Int32) -> Mask:
    """Return which of `calls` occur once: a graph launch occurs for each of its rows."""
    _, position, count = np.unique(calls, return_inverse=True, return_counts=True)
    return np.asarray(count[position] == 1)


def _lanes(trace: Trace, rows: npt.NDArray[np.intp]) -> Iterator[tuple[int, npt.NDArray[np.intp]]]:
    """Yield (stream, rows of it in order of start); rows that name no stream are divided by their track."""
    device = trace.device
    lane = np.where(device.stream[rows] >= 0, device.stream[rows], -1 - device.track[rows].astype(np.int64))
    for one in np.unique(lane):
        yield max(int(one), -1), rows[lane == one]


def _found_free(trace: Trace, launch: Int32, rows: npt.NDArray[np.intp], single: npt.NDArray[np.intp]) -> Mask:
    """Return which of the rows `single` were launched when all earlier rows of their stream had ended."""
    device, host = trace.device, trace.host
    free = np.zeros(len(device), dtype=np.bool_)
    for _, lane in _lanes(trace, rows):
        ends = np.maximum.accumulate(device.start[lane] + device.duration[lane])
        before = np.concatenate(([np.iinfo(np.int64).min], ends[:-1]))
        known = launch[lane] >= 0
        called = launch[lane[known]]
        free[lane[known]] = before[known] <= host.start[called] + host.duration[called]
    return np.asarray(free[single])


def _queues(trace: Trace, launch: Int32, single: npt.NDArray[np.intp]) -> Iterator[Queue]:
    for stream, lane in _lanes(trace, single):
        called = trace.host.start[launch[lane]]
        began = np.maximum(called, trace.device.start[lane])  # clocks of host and device may differ by a little
        span = int(began.max() - called.min())
        waited = int((began - called).sum())
        yield Queue(stream, longest_queue(called, began), waited / span if span else None)


def longest_queue(called: Int64, began: Int64) -> int:
    """Return the most rows that waited at once, each from `called` to `began`; at a tie the call comes first."""
    waiting = np.arange(1, len(called) + 1) - np.searchsorted(np.sort(began), np.sort(called), side="left")
    return int(waiting.max(initial=0))
