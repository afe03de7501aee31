"""Uneven work, a late host and noise are told apart."""

from __future__ import annotations

from dataclasses import replace

import pytest
from unit.diagnosis.cases import analysis, breakdown

from tracelock.analysis.model import Analysis
from tracelock.analysis.ranks import Rank, Ranks
from tracelock.diagnosis import diagnose


def ranks(uneven_us: float | None, waited: float = 100.0) -> Ranks:
    """Return four ranks that wait `waited` µs a step of 1000, four steps, now for this one and now for that."""
    rows = tuple(
        Rank(at, f"rank{at}", 1000.0, None, None, None, None, 4 * waited, 4 * waited, 1, None, None) for at in range(4)
    )
    return Ranks(rows, 4, (), 4, 0, "collectives", None, None, waited / 1000, uneven_us=uneven_us)


def on_host(lengths: tuple[float, ...]) -> Analysis:
    plain = analysis(breakdown(cpu_op=950.0, other=50.0))
    steps = tuple(replace(step, duration_us=length) for step, length in zip(plain.steps, lengths, strict=True))
    return replace(plain, steps=steps)


EVEN = on_host((1000.0, 1001.0, 999.0, 1000.0))


@pytest.mark.parametrize(
    ("uneven_us", "code"),
    [(4 * 90.0, "rank-imbalance"), (4 * 51.0, "rank-imbalance"), (4 * 20.0, "late-host"), (0.0, "late-host")],
)
def test_waiting_that_computing_does_not_explain_is_a_late_host(uneven_us: float, code: str) -> None:
    assert diagnose(EVEN, ranks=ranks(uneven_us)).findings[0].code == code


def test_on_hosts_alone_waiting_beyond_the_noise_of_the_steps_is_uneven_work() -> None:
    assert diagnose(EVEN, ranks=ranks(None)).findings[0].code == "rank-imbalance"


def test_on_hosts_alone_what_steps_differ_by_of_themselves_is_no_fault() -> None:
    noisy = on_host((900.0, 1100.0, 950.0, 1050.0))
    codes = [finding.code for finding in diagnose(noisy, ranks=ranks(None)).findings]
    assert not {"rank-imbalance", "late-host"} & set(codes)
