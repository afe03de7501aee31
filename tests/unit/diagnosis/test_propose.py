"""From remedies to settings that are worth a run."""

from __future__ import annotations

from dataclasses import replace

from unit.diagnosis.cases import analysis, breakdown

from tracelock.diagnosis import Diagnosed, Finding, Remedy, diagnose
from tracelock.diagnosis.propose import Proposal, propose

IN_FORCE = {"num_workers": 0, "persistent_workers": False, "pin_memory": False, "batch_size": 8}


def diagnosed(*remedies: Remedy, code: str = "made") -> Diagnosed:
    finding = Finding(code, "Made", "warning", 0.5, 0.5, "high", (), remedies)
    return replace(diagnose(analysis(breakdown(cpu_op=1.0))), findings=(finding,))


def test_remedies_of_a_real_finding_become_changes_of_the_settings_in_force() -> None:
    found = diagnose(analysis(breakdown(dataloader=500.0, cpu_op=500.0)), IN_FORCE)
    (proposal,) = propose(found, IN_FORCE)
    assert (proposal.settings, proposal.finding) == ({"num_workers": 4, "persistent_workers": True}, "dataloader-bound")


def test_only_what_changes_is_named() -> None:
    found = diagnosed(Remedy({"batch_size": 8, "pin_memory": True}, "faster copies"))
    assert propose(found, IN_FORCE) == [Proposal({"pin_memory": True}, "made", "faster copies")]


def test_nothing_is_proposed_twice_or_tried_again() -> None:
    found = diagnosed(
        Remedy({"batch_size": 16}, "a"),
        Remedy({"batch_size": 16, "num_workers": 0}, "the same"),
        Remedy({"batch_size": 32}, "tried"),
        Remedy({"batch_size": 8}, "in force"),
    )
    tried = [{**IN_FORCE, "batch_size": 32}]
    assert [proposal.expect for proposal in propose(found, IN_FORCE, tried)] == ["a"]


def test_code_advice_and_settings_that_exclude_each_other_are_left_out() -> None:
    found = diagnosed(Remedy({}, "less", "write better code"), Remedy({"persistent_workers": True}, "needs workers"))
    assert propose(found, IN_FORCE) == []


def test_without_a_cause_nothing_is_proposed() -> None:
    assert propose(diagnose(analysis(breakdown(cpu_op=1.0)), IN_FORCE), IN_FORCE) == []
