"""What "healthy" may claim: what was ruled out, what was not looked at, and how sure that is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from unit.diagnosis.cases import analysis, breakdown, gpu

from tracelock.analysis.model import Analysis
from tracelock.analysis.work import Copies, Work
from tracelock.diagnosis import Diagnosed, diagnose
from tracelock.diagnosis.examined import LACKS
from tracelock.diagnosis.rule import all_rules


def work(**changes: Any) -> Work:
    known = Work(900.0, 50.0, 10, 0.0, 400.0, (), (), (), 0.0, 0.0, None)
    return replace(known, **changes)


def healthy(**changes: Any) -> Analysis:
    return analysis(breakdown(cpu_op=950.0, other=50.0), **{"work": work(), **changes})


def confidence(found: Diagnosed) -> str:
    assert found.findings[0].code == "no-bottleneck"
    return found.findings[0].confidence


def test_every_rule_says_what_keeps_it_from_looking() -> None:
    assert {rule.code for rule in all_rules()} == set(LACKS)


def test_each_cause_is_named_or_ruled_out_or_not_examined() -> None:
    found = diagnose(healthy())
    unseen = {each.code for each in found.not_examined}
    assert unseen | set(found.ruled_out) == {rule.code for rule in all_rules()}
    assert not unseen & set(found.ruled_out)
    assert {"python-time", "needless-copies", "wrong-dtype"} <= set(found.ruled_out)
    assert {"throttling", "rank-imbalance", "launch-bound"} <= unseen
    assert all(each.why for each in found.not_examined)


def test_high_confidence_needs_operators_whose_work_is_needed() -> None:
    assert confidence(diagnose(healthy())) == "high"
    copies = (Copies("copy", 10, 90.0, ()),)
    assert confidence(diagnose(healthy(work=work(operators_us=850.0, copies=copies)))) == "medium"
    assert confidence(diagnose(healthy(work=work(operators_us=700.0)))) == "medium"


def test_without_types_of_inputs_no_high_confidence() -> None:
    found = diagnose(healthy(work=work(double_us=None)))
    assert confidence(found) == "medium"
    assert "record_shapes=True" in next(each.why for each in found.not_examined if each.code == "wrong-dtype")


def test_a_label_of_the_users_is_no_operator() -> None:
    found = diagnose(healthy(work=work(operators_us=130.0)))
    assert "operators work 13.0 % of the step, and no single cause" in found.verdict


@pytest.mark.parametrize("work_known", [None, work()])
def test_without_steps_nothing_is_judged(work_known: Work | None) -> None:
    plain = healthy(work=work_known)
    found = diagnose(replace(plain, step=replace(plain.step, source="whole trace")))
    assert found.verdict.startswith("Not judged: the trace marks no steps")
    assert "prof.step()" in found.verdict
    assert found.findings[0].remedies[0].code
    assert confidence(found) == "low"


@pytest.mark.parametrize(("window_us", "bound"), [(4_000.0, True), (8_000.0, False), (None, True)])
def test_a_device_is_busy_for_a_part_of_the_whole_window(window_us: float | None, bound: bool) -> None:
    worked = replace(gpu(3_900.0, 4_000.0), window_us=window_us)
    found = diagnose(analysis(breakdown(kernel=975.0, other=25.0), gpus=(worked,)))
    assert ("compute-bound" in found.verdict) == bound
    assert f"of {window_us or 4_000.0:,.0f} µs" in found.findings[0].evidence[0].text


def test_times_of_a_trace_without_steps_are_none_of_a_step() -> None:
    made = healthy()
    found = diagnose(replace(made, step=replace(made.step, source="whole trace"), steps=()))
    assert not any("a step" in fact.text for fact in found.findings[0].evidence)


def test_communication_behind_computing_is_told_with_what_shows_of_it() -> None:
    worked = replace(gpu(3_900.0, 4_000.0), communication_us=3_500.0, exposed_communication_us=120.0)
    told = [
        fact.text
        for fact in diagnose(analysis(breakdown(kernel=975.0, other=25.0), gpus=(worked,))).findings[0].evidence
    ]
    assert "GPU 0 communicates 3,500 µs, 120 µs of it while it computes nothing" in told
    assert not any(text.startswith("communication: 0") for text in told)
