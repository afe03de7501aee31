"""A small graded set: one case of each fault from a seed of its own, healthy controls, and the arithmetic of grades."""

from __future__ import annotations

import json

import pytest
from unit.diagnosis.cases import analysis, breakdown, gpu

from tracelock.cli import main
from tracelock.diagnosis import diagnose
from tracelock.errors import TracelockError
from tracelock.faults.collection import CONTROLS, FIRST_GRADING_SEED, cases, parse_seeds, wanted
from tracelock.faults.composed.mutations import MUTATIONS
from tracelock.faults.draw import WORTH, draw_control, draw_fault
from tracelock.faults.families import FAMILIES, Family
from tracelock.faults.grade import Answer, answer, grade
from tracelock.faults.healthy import HEALTHY
from tracelock.faults.peers import Advice, compared, plugin_advice
from tracelock.faults.real import REAL
from tracelock.faults.report import bounds_held, matrix
from tracelock.faults.simulator.simulate import true_gain
from tracelock.faults.workloads import FAULTS, SETTINGS

SEED = 700  # below the seeds that are kept for grading
# Seeds whose first draw is a case: the others only take longer to draw.
QUICK = {
    "loading in the main process": 702,
    "collate piece by piece": 709,
    "pageable copies": 705,
    "blocking copies": 702,
    "optimizer one by one": 718,
    "wrong layout": 701,
    "communication exposed": 701,
    "straggling rank": 701,
    "uneven ranks": 701,
}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_each_fault_is_named_and_its_cure_too(family: Family) -> None:
    drawn = draw_fault(family, QUICK.get(family.name, SEED))
    assert (drawn.cost >= WORTH) if family.costs else (drawn.cost < HEALTHY)
    found = answer(drawn)
    assert found.main == family.code
    assert found.cured
    if found.bound is not None and family.costs and family.name != "small batches":
        assert found.bound >= drawn.cost - 0.1


@pytest.mark.parametrize("seed", range(SEED, SEED + 6))
def test_healthy_jobs_get_no_finding(seed: int) -> None:
    drawn = draw_control(seed)
    assert true_gain(drawn.job, drawn.healed) < HEALTHY
    assert answer(drawn).found == ("no-bottleneck",)


def told(expected: str, *found: str, **rest: object) -> Answer:
    known: dict[str, object] = {"cost": 0.3, "bound": 0.4, "cured": True, "facts": True}
    known |= {"family": expected, "seed": 1, "right": found[0] == expected}
    return Answer(expected=expected, found=found, **{**known, **rest})  # type: ignore[arg-type]


def test_shares_are_of_faulty_and_of_healthy_cases() -> None:
    answers = [
        told("launch-bound", "launch-bound"),
        told("launch-bound", "synchronization", "launch-bound", cured=False),
        told("few-threads", "no-bottleneck", graded=False),
        told("no-bottleneck", "no-bottleneck", cured=None),
        told("no-bottleneck", "step-gaps", cured=None),
        told("no-bottleneck", "no-bottleneck", cured=None),
        told("no-bottleneck", "no-bottleneck", cured=None),
    ]
    assert grade(answers) == {"main_cause_right": 0.5, "false_alarms": 0.25, "cure_named": 0.5}
    assert grade([])["false_alarms"] is None
    assert "| launch-bound (`launch-bound`) | 2 | 1 | synchronization 1 |" in matrix(answers)


def test_bounds_are_held_against_the_true_cost() -> None:
    answers = [
        told("step-gaps", "step-gaps", family="pauses: logging", bound=0.29),
        told("step-gaps", "step-gaps", family="pauses: logging", bound=0.1),
    ]
    assert bounds_held(answers) == 0.5


def test_families_and_seeds_are_checked() -> None:
    assert parse_seeds("10:12") == range(10, 12)
    assert parse_seeds("7") == range(7, 8)
    for wrong in ("a", "3:2", "1:", ":4", "-1"):
        with pytest.raises(TracelockError, match="expected FIRST:LAST"):
            parse_seeds(wrong)
    with pytest.raises(TracelockError, match="did you mean 'leak'"):
        wanted(["leek"])
    asked = cases(range(2), wanted(["leak"]), False, None)
    assert [each.family for each in asked] == ["leak"] * 2 + [None] * 2 * CONTROLS
    assert SEED < FIRST_GRADING_SEED


def test_every_cause_that_a_simulation_or_a_cpu_can_have_is_in_the_collection() -> None:
    from tracelock.diagnosis.rule import all_rules

    graded = {family.code for family in FAMILIES} | {fault.code for fault in REAL}
    graded |= {code for mutation in MUTATIONS for code in mutation.codes}
    assert graded >= {rule.code for rule in all_rules()}
    assert {fault.settings.get("fault", "none") for fault in REAL} <= set(FAULTS)
    own = {setting.name: setting for setting in SETTINGS}
    assert all(not own[name].fault(value) for fault in REAL for name, value in fault.settings.items() if name in own)


# The rules that others publish.


def test_the_plugins_rules() -> None:
    busy = analysis(breakdown(kernel=940.0, dataloader=60.0), gpus=(gpu(3760.0, 4000.0),))
    assert plugin_advice(busy).said == ("dataloader",)
    idle = analysis(breakdown(kernel=400.0, communication=150.0, other=450.0), gpus=(gpu(1600.0, 4000.0),))
    assert plugin_advice(idle).said == ("communication", "larger batch")
    assert "launch-bound" in plugin_advice(idle).stands_for
    assert diagnose(busy).findings[0].code == "dataloader-bound"


def test_peers_are_graded_kindly() -> None:
    right = Advice("gpu-idle", ("dataloader", "smallbatch"), ("dataloader-bound", "launch-bound"))
    silent = Advice("gpu-idle", (), ())
    shares = compared([("launch-bound", right), ("throttling", silent), ("no-bottleneck", silent)])
    assert shares["gpu-idle"] == {"cases": 3, "right": 0.5, "right_where_it_has_a_rule": 1.0, "false_alarms": 0.0}


# The command.


def test_the_document_ends_with_the_grade(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracelock.faults.collection.CONTROLS", 1)
    with pytest.raises(SystemExit) as ended:
        main(["faults", "--json", "--seeds", str(SEED), "--family", "leak", "--peers"])
    assert not ended.value.code
    text = capsys.readouterr().out
    found = json.loads(text)
    assert list(found)[-1] == "grade"
    assert set(found["grade"]) == {"main_cause_right", "false_alarms", "cure_named"}
    assert found["schema"] == "tracelock/faults/1"
    assert len(found["cases"]) == 2
    assert "TensorBoard plugin" in found["peers"]


def test_a_wrong_fault_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["faults", "--family", "leek"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.strip() == "tracelock: error: --family: 'leek' is no fault (did you mean 'leak'?)"
