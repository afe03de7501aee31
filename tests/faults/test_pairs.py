"""Two faults in one job: how they are put together, what each costs, and how answers are graded."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from faults.speaking import EASY, job

from tracelock.cli import main
from tracelock.faults import pairgrade
from tracelock.faults import pairs as drawing
from tracelock.faults.draw import WORTH
from tracelock.faults.families import FAMILIES, Family
from tracelock.faults.pairgrade import PairAnswer, answer_pair, calibration, grade_pairs, robustness
from tracelock.faults.pairs import DrawnPair, pairs, put_together, switched_off
from tracelock.faults.report import SLACK
from tracelock.faults.simulator.job import Data, Habits, Job
from tracelock.faults.variants import PLAIN, POORER, Variant

FAMILY = {family.name: family for family in FAMILIES}


def pair(first: str, second: str, both: Job, *, one: dict[str, Any], two: dict[str, Any]) -> DrawnPair:
    """Return a case made by hand: `both` faults, and the changes of parts that switch each off."""
    families: tuple[Family, Family] = (FAMILY[first], FAMILY[second])
    return switched_off(7, families, both, replace(both, **one), replace(both, **two))


SLOW = Data(sample_us=1.5)
LOADER = {"settings": replace(EASY, num_workers=0), "data": SLOW}
WORKERS = {"settings": EASY, "data": Data(sample_us=0.1)}
NAMES = {"loader": "loading in the main process", "clock": "throttled clock", "operator": "slow operator"}

CASES: tuple[DrawnPair, ...] = (
    pair(NAMES["loader"], NAMES["clock"], job(**LOADER, clock=0.6, habits=Habits()), one=WORKERS, two={"clock": 1.0}),
    pair(
        NAMES["loader"],
        NAMES["operator"],
        job(**LOADER, habits=Habits(slow_sample_us=2.0)),
        one=WORKERS,
        two={"habits": Habits()},
    ),
    pair(
        "full precision",
        "pauses: checkpoint",
        job(
            settings=replace(EASY, matmul_precision="highest"),
            habits=Habits(logs_item=False, pause="checkpoint", pause_us=9_000.0),
        ),
        one={"settings": EASY},
        two={"habits": Habits(logs_item=False)},
    ),
)


# Putting together.


def test_a_thousand_cases_can_be_drawn_from_a_handful_of_seeds() -> None:
    found = list(pairs())
    assert len(found) >= 200
    assert all(first.code != second.code for first, second in found)
    assert all(first.costs or second.costs for first, second in found)


def test_each_fault_is_switched_off_with_the_other_left_in_place() -> None:
    healthy = job()
    slow = replace(healthy, clock=0.6)
    both = replace(slow, habits=replace(slow.habits, repeated=500))
    made = put_together((slow, healthy), (both, slow))
    assert made is not None
    assert made[0] == both
    assert made[1] == (replace(both, clock=1.0), slow)


def test_faults_that_change_the_same_thing_are_no_pair() -> None:
    healthy = job()
    one, two = replace(healthy, clock=0.6), replace(healthy, clock=0.5)
    assert put_together((one, healthy), (two, one)) is None


def test_a_pair_of_which_one_costs_too_little_is_given_up_before_the_other_is_simulated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Job] = []

    def sample(each: Job, timed: int) -> float:
        asked.append(each)
        return 100.0

    monkeypatch.setattr(drawing, "sample_ns", sample)
    monkeypatch.setattr(drawing, "ATTEMPTS", 3)
    assert drawing.draw_pair(CASES[0].families, 1) is None
    whole_and_first = 2
    assert asked
    assert len(asked) <= whole_and_first * (drawing.ATTEMPTS - 1)


# The table of confidence in docs/measurements.md: places of pairs and seeds of development that are drawn quickly.

QUICKLY = ((156, 30000), (188, 30000), (280, 30000), (128, 30000))


def test_verdicts_called_high_are_right_in_full_and_in_poorer_recordings() -> None:
    answers = [each for asked in QUICKLY for each in pairgrade.ask_pair(asked)]
    high = calibration(answers)["high"]
    assert (high["cases"] or 0) >= len(QUICKLY)
    assert high["right"] == 1.0


# Answers: a small sample, as the grading draws them.


@pytest.mark.parametrize("drawn", CASES, ids=lambda drawn: drawn.name)
def test_the_larger_leads_the_second_is_named_and_bounds_hold(drawn: DrawnPair) -> None:
    assert max(drawn.costs) >= WORTH
    found = answer_pair(drawn, PLAIN, with_first_healed=True)
    assert found.right
    assert found.second_named
    assert found.bound_held
    assert found.revealed


@pytest.mark.parametrize("variant", POORER, ids=lambda variant: variant.name)
def test_a_poorer_recording_is_right_or_silent_but_never_surely_wrong(variant: Variant) -> None:
    drawn = CASES[1]  # what the throttled clock rests on is in the run's facts alone
    found = answer_pair(drawn, variant)
    assert found.right or found.confidence != "high"


def test_a_file_that_is_cut_loses_its_second_half(tmp_path: Path) -> None:
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(b"0123456789"))
    cut = next(variant.spoil for variant in POORER if variant.spoil)
    cut(path)
    assert gzip.decompress(path.read_bytes()) == b"01234"


# The arithmetic.


def told(found: tuple[str, ...], confidence: str = "high", variant: str = "plain", **rest: Any) -> PairAnswer:
    known: dict[str, Any] = {"costs": (0.4, 0.2), "together": 0.5, "tied": False, "revealed": True}
    known |= {"estimates": (0.4,) * len(found), "bounds": (("a", 0.4, 0.4),)}
    return PairAnswer("a + b", 1, variant, ("a", "b"), found=found, confidence=confidence, **{**known, **rest})


def test_shares_are_of_plain_recordings_and_confidence_of_all() -> None:
    answers = [
        told(("a", "b")),
        told(("b", "a"), bounds=(("a", 0.4 - 2 * SLACK, 0.4),)),
        told(("b",), tied=True, revealed=False, confidence="medium"),
        told(("no-bottleneck",), "low", "one step", bounds=(), revealed=None),
    ]
    assert grade_pairs(answers) == {
        "main_cause_right": pytest.approx(2 / 3),
        "second_named": pytest.approx(2 / 3),
        "revealed": pytest.approx(2 / 3),
        "bound_held": pytest.approx(2 / 3),
        "high_confidence_right": 0.5,
    }
    assert calibration(answers)["medium"] == {"cases": 1, "right": 1.0}
    assert calibration(answers)["low"] == {"cases": 1, "right": 0.0}
    assert robustness(answers)["one step"] == {"cases": 1, "right": 0, "silent": 1, "wrong": 0, "wrong_high": 0}
    assert grade_pairs([])["bound_held"] is None


def test_the_command_prints_a_document_that_ends_with_the_grade(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairgrade, "ask_pair", lambda asked: [told(("a", "b"))] if asked[0] == 0 else [])
    with pytest.raises(SystemExit) as ended:
        main(["faults", "--pairs", "--json", "--seeds", "7"])
    assert not ended.value.code
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "tracelock/faults/1"
    assert list(found)[-1] == "grade"
    assert {"main_cause_right", "false_alarms", "cure_named"} <= set(found["grade"])
    assert {"second_named", "bound_held", "high_confidence_right"} <= set(found["grade"])
    with pytest.raises(SystemExit):
        main(["faults", "--pairs", "--seeds", "7"])
    assert "| confidence | verdicts | right |" in capsys.readouterr().out
