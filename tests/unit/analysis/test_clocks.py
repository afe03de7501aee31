"""Host and device on clocks of their own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import Host, OnDevice, kernel, launch, loading, make_trace, op, runtime, step

from tracelock.analysis import analyze
from tracelock.diagnosis import diagnose

MS = 1_000_000
SECOND = 1000 * MS


def loop(count: int = 4) -> tuple[list[Host], list[OnDevice]]:
    """Return steps of 10 ms: 4 ms of loading, two operators, each with a kernel of 2 ms, a wait for them."""
    host: list[Host] = []
    device: list[OnDevice] = []
    for number in range(count):
        start = 5 * MS + number * 10 * MS
        host += [step(number, start, 10 * MS - 1000), loading(start, 4 * MS)]
        for part in range(2):
            at, link = start + 4 * MS + 100_000 + part * 500_000, 2 * number + part + 1
            host += [op("aten::mm", at, 100_000), launch(at + 20_000, 5000, link)]
            device.append(kernel("volta_sgemm_128x32_nt", at + 30_000 + part * 2 * MS, 2 * MS, correlation=link))
        host.append(runtime("cudaDeviceSynchronize", start + 5 * MS, 4 * MS))
    return host, device


@pytest.mark.parametrize("shift", [-SECOND, -30 * MS, SECOND])
def test_device_rows_are_moved_by_their_launches(shift: int) -> None:
    host, device = loop()
    right = analyze(make_trace(host, device))
    assert [warning.code for warning in right.trace.warnings] == []
    moved = [replace(row, start=row.start + shift) for row in device]
    found = analyze(make_trace(host, moved))
    (warning,) = found.trace.warnings
    assert (warning.code, warning.count) == ("clocks-apart", 8)
    least = 10_000  # the shortest way from a launch to its kernel: what lies between it and 0 cannot be told
    assert f"{abs(shift + least) / 1e6:,.3f} ms" in warning.message
    before, after = right.gpus[0], found.gpus[0]
    assert (after.span_us, after.busy_us, after.idle_us) == (before.span_us, before.busy_us, before.idle_us)
    assert found.step.mean_us == pytest.approx(right.step.mean_us, abs=11)
    assert diagnose(found).findings[0].code == diagnose(right).findings[0].code


@pytest.mark.parametrize("late", [0, -200_000, 9 * MS])
def test_small_differences_and_full_queues_are_left_as_they_are(late: int) -> None:
    host, device = loop()
    waits = [row for row in host if "Synchronize" not in row.name]
    found = analyze(make_trace(waits, [replace(row, start=row.start + late) for row in device]))
    assert found.trace.warnings == ()


def test_a_device_that_is_far_behind_its_launches_is_no_other_clock() -> None:
    """Thirty launches at once, then kernels of 20 ms with pauses between them: no call waited for any."""
    host = [op("aten::mm", 0, 900_000), *(launch(1000 * n, 500, n) for n in range(1, 30))]
    device = [kernel("k", 20 * MS + n * 21 * MS, 20 * MS, correlation=n) for n in range(1, 30)]
    assert analyze(make_trace(host, device)).trace.warnings == ()


def test_without_links_nothing_is_concluded() -> None:
    host, device = loop()
    found = analyze(make_trace(host, [replace(row, start=row.start + SECOND, correlation=-1) for row in device]))
    assert [warning.code for warning in found.trace.warnings] == ["clocks-unrelated"]
    (finding,) = diagnose(found).findings
    assert (finding.confidence, finding.title) == (
        "low",
        "No verdict: host and device wrote times of different clocks",
    )
