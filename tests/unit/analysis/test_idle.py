"""Idle time against a count of nanoseconds."""

from __future__ import annotations

import numpy as np
import pytest
from builders import OnDevice, annotation, frame, kernel, launch, loading, make_trace, op, runtime, step
from hypothesis import given
from hypothesis import strategies as st
from strategies import in_chunks_of, traces

from tracelock.analysis.gpu import device_times
from tracelock.analysis.idle import CAUSES, OUTSIDE, HostTime, Idle, idle_causes
from tracelock.analysis.intervals import gaps, length
from tracelock.analysis.links import is_busy, link
from tracelock.analysis.names import is_collective_call, is_loading, is_step, is_synchronising
from tracelock.analysis.nesting import nest
from tracelock.analysis.steps import find_windows
from tracelock.trace.columns import HostKind, Trace

ASKED = (("dataloader", is_loading), ("synchronization", is_synchronising), ("communication", is_collective_call))


def divided(trace: Trace) -> list[Idle]:
    links = link(trace, nest(trace.host))
    main = find_windows(trace, links).track
    busy = is_busy(trace.device)
    return [
        idle_causes(trace, links, busy & (trace.device.device == time.device), time.busy, HostTime(trace, main))
        for time in device_times(trace)
    ]


def filled(idle: Idle) -> dict[str, int]:
    return {cause: time for cause, time in idle.causes.items() if time}


def between(*host: object, launched: int = 90) -> Idle:
    """Return why a device was idle from 20 to 100, with these rows of the main thread."""
    calls = [launch(0, 5, 1), launch(launched, 5, 2)]
    rows = [*calls, *host]
    (idle,) = divided(make_trace(rows, [kernel("a", 10, 10, correlation=1), kernel("b", 100, 10, correlation=2)]))
    return idle


def test_loading_then_operators_then_launch_latency() -> None:
    idle = between(loading(15, 50), op("aten::stack", 30, 10), op("aten::mm", 80, 18))
    assert filled(idle) == {"dataloader": 45, "host": 10, "launch": 10, "unattributed": 15}
    assert idle.host == {"aten::mm": 10}


def test_work_that_was_launched_before_the_gap_waited_for_the_device() -> None:
    assert filled(between(launched=6)) == {"launch": 80}


def test_a_synchronising_call_inside_an_operator_is_synchronisation() -> None:
    idle = between(op("aten::nonzero", 20, 60), runtime("cudaStreamSynchronize", 30, 40))
    assert filled(idle) == {"host": 20, "synchronization": 40, "launch": 10, "unattributed": 10}
    assert idle.host == {"aten::nonzero": 20}


@pytest.mark.parametrize("name", ["cudaMemcpy", "hipMemcpyWithStream", "cudaDeviceSynchronize", "cuStreamSynchronize"])
def test_calls_that_block(name: str) -> None:
    assert filled(between(runtime(name, 20, 60)))["synchronization"] == 60


@pytest.mark.parametrize("name", ["cudaMemcpyAsync", "cudaStreamIsCapturing", "cudaMalloc", "cuMemcpyHtoDAsync_v2"])
def test_calls_that_do_not_block(name: str) -> None:
    assert filled(between(runtime(name, 20, 60)))["host"] == 60


def test_a_collective_of_the_host_is_communication() -> None:
    assert filled(between(annotation("gloo:all_reduce", 20, 70)))["communication"] == 70


def test_python_is_named_by_its_innermost_frame() -> None:
    idle = between(step(0, 0, 200), frame("train.py(1): main", 10, 60), frame("train.py(9): augment", 30, 20))
    assert filled(idle) == {"host": 70, "launch": 10}
    assert idle.host == {"train.py(1): main": 30, "train.py(9): augment": 20, OUTSIDE: 20}


def test_the_thread_of_the_next_launch_is_asked_first_then_the_main_thread() -> None:
    host = [
        step(0, 0, 200),
        loading(25, 40),
        launch(0, 5, 1),
        launch(90, 5, 2, thread=2),
        op("backward", 50, 30, thread=2),
    ]
    (idle,) = divided(make_trace(host, [kernel("a", 10, 10, correlation=1), kernel("b", 100, 10, correlation=2)]))
    assert filled(idle) == {"dataloader": 25, "host": 45, "launch": 10}
    assert idle.host == {"backward": 30, OUTSIDE: 15}


def test_without_a_launch_nothing_is_known() -> None:
    (idle,) = divided(make_trace([op("a", 0, 200)], [kernel("a", 10, 10), kernel("b", 100, 10)]))
    assert filled(idle) == {"unattributed": 80}
    (alone,) = divided(make_trace([], [kernel("a", 10, 10), kernel("b", 100, 10)]))
    assert filled(alone) == {"unattributed": 80}


def test_a_launch_after_its_kernel_began_waited_for_nothing() -> None:
    assert filled(between(op("late", 20, 200), launched=130)) == {"host": 80}


def test_a_device_that_was_never_idle() -> None:
    (idle,) = divided(make_trace([launch(0, 5, 1)], [kernel("a", 10, 10, correlation=1)]))
    assert filled(idle) == {}
    assert idle.to_causes().host == 0
    assert idle.to_host(5) == ()


def on_thread(trace: Trace, track: int, tick: int) -> list[int]:
    """The rows of a thread at a nanosecond; the profiler's own work is none."""
    host = trace.host
    return [
        row
        for row in range(len(host))
        if host.track[row] == track
        and host.kind[row] != HostKind.OVERHEAD
        and host.start[row] <= tick < host.start[row] + host.duration[row]
    ]


def doing(trace: Trace, track: int, tick: int) -> tuple[str, str] | None:
    """What a thread was doing at a nanosecond, and in which row; None where it has none."""
    rows = on_thread(trace, track, tick)
    names = [trace.texts[trace.host.name[row]] for row in rows if trace.host.kind[row] != HostKind.PYTHON]
    for cause, ask in ASKED:
        if any(ask(name) for name in names):
            return cause, ""
    if not rows:
        return None
    innermost = trace.texts[trace.host.name[max(rows)]]
    return "host", OUTSIDE if is_step(innermost) else innermost


def cause_at(trace: Trace, launched: int, main: int, tick: int) -> tuple[str, str]:
    """The twin: why the device was idle at a nanosecond that a row launched by `launched` ended."""
    if launched < 0:
        return "unattributed", ""
    if tick >= trace.host.start[launched]:
        return "launch", ""
    mine = doing(trace, int(trace.host.track[launched]), tick)
    return mine or (doing(trace, main, tick) if main >= 0 else None) or ("unattributed", "")


@given(traces(), st.sampled_from((2, 1 << 20)))
def test_causes_are_those_counted_nanosecond_by_nanosecond(trace: Trace, chunk: int) -> None:
    with in_chunks_of(chunk):
        every = divided(trace)
    links = link(trace, nest(trace.host))
    main = find_windows(trace, links).track
    for device, idle in zip(device_times(trace), every, strict=True):
        free = gaps(device.busy, *device.span)
        mine = np.flatnonzero(is_busy(trace.device) & (trace.device.device == device.device))
        mine = mine[trace.device.duration[mine] > 0]
        found: list[tuple[str, str]] = []
        for low, high in zip(free.start.tolist(), free.end.tolist(), strict=True):
            following = mine[trace.device.start[mine] == high][0]
            launched = int(links.launch[following])
            found += [cause_at(trace, launched, main, tick) for tick in range(low, high)]
        causes = [cause for cause, _ in found]
        assert idle.causes == {cause: causes.count(cause) for cause in CAUSES}
        assert sum(idle.causes.values()) == length(free)
        names = [name for cause, name in found if cause == "host"]
        assert {name: spent for name, spent in idle.host.items() if spent} == {
            name: names.count(name) for name in names
        }


def test_rows_of_another_device_end_no_gap() -> None:
    host = [launch(0, 5, 1), launch(50, 5, 2), launch(90, 5, 3), op("a", 20, 70)]
    rows = [
        kernel("a", 10, 10, correlation=1),
        kernel("other", 60, 10, correlation=2, device=1),
        kernel("b", 100, 10, correlation=3),
        OnDevice("gpu label", 20, 80),
    ]
    first, second = divided(make_trace(host, rows[:3]))
    assert filled(first) == {"host": 70, "launch": 10}
    assert filled(second) == {}
