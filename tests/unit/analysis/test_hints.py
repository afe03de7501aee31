"""What a trace does not hold is said, and no verdict rests on it."""

from __future__ import annotations

import pytest
from builders import Host, MemoryEvent, OnDevice, kernel, launch, loading, make_trace, op, runtime, step

from tracelock.analysis import analyze
from tracelock.analysis.model import Analysis
from tracelock.diagnosis import diagnose
from tracelock.diagnosis.trust import DOUBTFUL, WITHHELD
from tracelock.trace.columns import Trace, TraceWarning
from tracelock.trace.tally import KINDS

MS = 1_000_000


def codes(found: Analysis) -> list[str]:
    return [warning.code for warning in found.trace.warnings]


def operators(count: int) -> list[Host]:
    return [op("aten::add", 1000 + n * MS, MS // 2) for n in range(count)]


def few_steps() -> Trace:
    return make_trace([step(n, n * 100 * MS, 99 * MS) for n in range(5)])


@pytest.mark.parametrize(
    ("host", "device"),
    [
        ([step(n, n * 100 * MS, 99 * MS) for n in range(5)], []),
        ([], [kernel("k", 0, 130)]),
        (operators(5), []),
        ([op("aten::add", 10 * n, 9) for n in range(12)], []),
    ],
    ids=["five rows of a filtered file", "one kernel of 130 ns", "five operators", "a window of 119 ns"],
)
def test_too_little_is_not_judged(host: list[Host], device: list[OnDevice]) -> None:
    found = analyze(make_trace(host, device))
    assert "too-little-to-judge" in codes(found)
    (finding,) = diagnose(found).findings
    assert (finding.code, finding.confidence, finding.gain_at_most) == ("no-bottleneck", "low", None)
    assert finding.title == "No verdict: the trace holds too little to judge anything by"


def test_a_run_on_a_device_without_its_rows() -> None:
    """Told by the memory of the device, or by launches; a run on the CPU has neither."""
    steps = [step(n, n * 20 * MS, 20 * MS - 1) for n in range(3)]
    memory = [MemoryEvent(5 * MS, 512, 512, 1024, 1, device_type=1, device=0)]
    assert codes(analyze(make_trace([*steps, *operators(50)], memory=memory))) == ["no-device-rows"]
    launches = [launch(2000 + n * MS, 10, n + 1) for n in range(50)]
    found = analyze(make_trace([*steps, *operators(50), *launches]))
    assert codes(found) == ["no-device-rows"]
    assert {finding.confidence for finding in diagnose(found).findings} == {"low"}
    on_cpu = [MemoryEvent(5 * MS, 512, 512, 1024, 1)]
    assert codes(analyze(make_trace([*steps, *operators(50)], memory=on_cpu))) == []
    work = [kernel("k", 3000 + n * MS, 900, correlation=n + 1) for n in range(50)]
    assert codes(analyze(make_trace([*steps, *operators(50), *launches], work, memory=memory))) == []


@pytest.mark.parametrize(("batches", "said"), [(10, ["many-batches-in-a-step"]), (4, [])])
def test_ten_batches_in_a_step(batches: int, said: list[str]) -> None:
    """One step of 500 ms that holds all the loop; four batches may be one of accumulated gradients."""
    host = [step(0, 0, 500 * MS)]
    for batch in range(batches):
        start = batch * 500 * MS // batches
        host += [loading(start, 10 * MS), op("aten::mm", start + 11 * MS, 20 * MS), runtime("x", start, 5)]
    found = analyze(make_trace(host))
    assert codes(found) == said
    assert found.step.mean_us == 500_000
    if said:
        assert found.trace.warnings[0].count == 10
        assert {finding.confidence for finding in diagnose(found).findings} == {"low"}


def test_codes_that_forbid_a_verdict_are_codes_that_are_given() -> None:
    own = {"clocks-unrelated", "too-little-to-judge", "no-device-rows", "many-batches-in-a-step"}
    assert {*WITHHELD, *DOUBTFUL} - own <= set(KINDS)


@pytest.mark.parametrize("code", sorted(WITHHELD))
def test_no_finding_is_given_where_it_is_withheld(code: str) -> None:
    host = [step(0, 0, 500 * MS), loading(0, 400 * MS), *operators(60)]
    plain = make_trace(host)
    assert diagnose(analyze(plain)).findings[0].code != "no-bottleneck"
    warned = make_trace(host, warnings=(TraceWarning(code, 5, "x"),))
    (finding,) = diagnose(analyze(warned)).findings
    assert (finding.code, finding.confidence) == ("no-bottleneck", "low")
    assert finding.title.startswith("No verdict: ")
    assert finding.evidence == ()  # figures of such rows speak for nothing
