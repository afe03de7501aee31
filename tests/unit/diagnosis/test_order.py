"""The order of findings: by what removing each should bring, time that two share counted once, bounds beside it."""

from __future__ import annotations

from typing import Any

import pytest
from unit.diagnosis.cases import analysis, breakdown, costs, gpu

from tracelock.analysis.costs import Copying, Waiting
from tracelock.diagnosis import diagnose
from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.order import main_causes
from tracelock.diagnosis.rule import Cause, Rule


def rule(code: str, **known: Any) -> Rule:
    """Return a rule that always finds one cause."""
    cause = Cause(code, share=None, evidence=(), remedies=(), **{"removal": None, **known})
    return Rule(code, "", "", "", (), lambda _: cause)


def case(device_us: float, host_us: float, waiting_us: float = 0.0) -> Case:
    made = costs(1000.0, device_us=device_us, host_us=host_us, waiting_us=waiting_us)
    parts = breakdown(kernel=device_us, other=1000.0 - device_us)
    return Case(analysis(parts, gpus=(gpu(4 * device_us, 4000.0),), costs=made))


def order(monkeypatch: pytest.MonkeyPatch, at: Case, *rules: Rule) -> list[tuple[str, float | None, float | None]]:
    monkeypatch.setattr("tracelock.diagnosis.order.all_rules", lambda: rules)
    return [
        (each.rule.code, each.gain and round(each.gain, 6), each.estimate and round(each.estimate, 6))
        for each in main_causes(at)
    ]


def test_what_should_bring_more_leads_even_with_the_lower_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    sure = rule("sure", removal=Removal(host=200.0))
    wide = rule("wide", removal=Removal(host=300.0), likely=Removal(host=100.0))
    found = order(monkeypatch, case(500.0, 1000.0), wide, sure)
    assert found == [("sure", 0.2, 0.2), ("wide", 0.3, 0.1)]


def test_a_wait_that_two_causes_share_is_credited_once(monkeypatch: pytest.MonkeyPatch) -> None:
    at = case(690.0, 600.0, 400.0)  # the device idles 310: no more than that comes back, whatever is removed
    first = rule("first", removal=Removal(waiting=250.0))
    second = rule("second", removal=Removal(waiting=200.0))
    found = order(monkeypatch, at, second, first)
    assert found == [("first", 0.25, 0.25), ("second", 0.2, 0.06)]
    assert sum(estimate or 0.0 for *_, estimate in found) <= 0.31 + 1e-9


def test_a_finding_below_min_gain_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    small = rule("small", removal=Removal(host=17.0))
    known = rule("known", gain=0.017)
    assert order(monkeypatch, case(500.0, 1000.0), small, known) == []


def test_a_cause_that_costs_no_time_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    found = order(monkeypatch, case(500.0, 1000.0), rule("leak"), rule("slow", gain=0.06, estimate=0.05))
    assert found == [("slow", 0.06, 0.05), ("leak", None, None)]


def test_the_document_holds_the_estimate_beside_the_bound() -> None:
    wait = Waiting("synchronization", "aten::item", 2.0, 300.0, 300.0, 100.0, ())
    copy = Copying("HtoD", "pageable", True, 1.0, 150.0, 150.0, 160.0, 150.0, True, False, ())
    made = costs(1000.0, device_us=600.0, host_us=500.0, waiting_us=450.0, waits=(wait,), copies=(copy,))
    traced = analysis(breakdown(kernel=600.0, other=400.0), gpus=(gpu(2400.0, 4000.0),), costs=made)
    found = diagnose(traced).findings
    assert {each.code for each in found} == {"synchronization", "pageable-copies"}
    for each in found:
        assert each.gain_estimate is not None
        assert each.gain_at_most is not None
        assert 0.0 <= each.gain_estimate <= each.gain_at_most
    assert [each.gain_estimate for each in found] == sorted((each.gain_estimate or 0.0 for each in found), reverse=True)
