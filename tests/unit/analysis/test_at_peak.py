"""What lives at the peak of the memory."""

from __future__ import annotations

from builders import MemoryEvent, annotation, make_trace, op

from tracelock.analysis.at_peak import Living, peaks
from tracelock.analysis.nesting import nest
from tracelock.trace import Trace

ROWS = [
    op("aten::mm", 0, 10),
    op("MmBackward0", 20, 20, forward_thread=1, thread=2),
    op("aten::mm", 22, 10, thread=2),
    annotation("Optimizer.step#Adam.step", 50, 20),
    op("aten::zeros", 52, 10),
]


def _trace(*memory: MemoryEvent) -> Trace:
    return make_trace(ROWS, memory=memory)


def event(time: int, size: int, allocated: int, address: int, thread: int = 1) -> MemoryEvent:
    return MemoryEvent(time, size, allocated, address=address, thread=thread, device_type=1, device=0)


def test_what_is_freed_before_the_peak_is_not_there_and_each_has_its_part_of_the_step() -> None:
    trace = _trace(
        event(5, 100, 1100, 1),
        event(6, 30, 1130, 2),
        event(8, -30, 1100, 2),
        event(25, 200, 1300, 3, thread=2),
        event(55, 300, 1600, 4),
        event(60, -300, 1300, 4),
    )
    (peak,) = peaks(trace, nest(trace.host), 0)
    assert (peak.device, peak.time_us, peak.allocated_bytes, peak.before_bytes) == ("cuda:0", 0.055, 1600, 1000)
    assert peak.living == (
        Living("optimizer", "aten::zeros", 1, 300),
        Living("backward", "aten::mm", 1, 200),
        Living("forward", "aten::mm", 1, 100),
    )


def test_a_free_in_the_same_nanosecond_but_later_in_the_file_still_lives() -> None:
    trace = _trace(event(5, 100, 100, 1), event(5, -100, 0, 1))
    (peak,) = peaks(trace, nest(trace.host), 0)
    assert peak.living == (Living("forward", "aten::mm", 1, 100),)


def test_memory_outside_of_operators_has_no_name() -> None:
    trace = _trace(event(45, 100, 100, 1))
    (peak,) = peaks(trace, nest(trace.host), 0)
    assert peak.living == (Living("outside of operators", "", 1, 100),)


def test_without_addresses_or_totals_it_is_unknown_and_says_why() -> None:
    trace = _trace(event(5, 100, 100, 0))
    (peak,) = peaks(trace, nest(trace.host), 0)
    assert peak.living == ()
    assert peak.before_bytes is None
    assert "addresses" in (peak.why_not or "")
    without = _trace(event(5, 100, -1, 1))
    assert peaks(without, nest(without.host), 0) == ()
