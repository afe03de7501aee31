"""Rounds of remedies stay within the study's limits, and say what they left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tracelock.diagnosis.propose import Proposal
from tracelock.study.progress import Board
from tracelock.study.rounds import _within_limits as within_limits

PROPOSALS = [Proposal({"num_workers": count}, "dataloader-bound", "less waiting") for count in (1, 2, 4)]


def plan(max_runs: int = 100, budget_minutes: float = 100, repeats: int = 3) -> dict:
    return {"repeats": repeats, "remedies": {"max_runs": max_runs, "budget_minutes": budget_minutes, "max_rounds": 2}}


def made_run(base: Path, number: int, seconds: int) -> None:
    folder = base / "runs" / "default" / "v" / str(number)
    folder.mkdir(parents=True)
    document = {
        "schema": "tracelock/run/1",
        "started": "2026-01-01T00:00:00+00:00",
        "ended": f"2026-01-01T00:00:{seconds:02d}+00:00",
    }
    (folder / "run.json").write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("max_runs", "kept"),
    [
        (12, 3),  # the starting variant and three proposals, three times each
        (11, 2),
        (9, 2),
        (6, 1),
        (5, 0),
        (1, 0),
    ],
)
def test_a_limit_of_runs_counts_the_starting_variant(tmp_path: Path, max_runs: int, kept: int) -> None:
    chosen, why = within_limits(tmp_path, 1, plan(max_runs), PROPOSALS)
    assert chosen == PROPOSALS[:kept]
    if kept == 3:
        assert why is None
    else:
        assert why == f"{3 - kept} of 3 proposals left out: remedies.max_runs is {max_runs}"


def test_a_budget_of_minutes_goes_by_what_the_study_s_own_runs_took(tmp_path: Path) -> None:
    made_run(tmp_path, 1, 10)
    made_run(tmp_path, 2, 30)  # 20 s each on average: 9 runs in 3 minutes
    chosen, why = within_limits(tmp_path, 1, plan(budget_minutes=3), PROPOSALS)
    assert len(chosen) == 2
    assert why == "1 of 3 proposals left out: remedies.budget_minutes is 3"


def test_nothing_proposed_is_said_so(tmp_path: Path) -> None:
    assert within_limits(tmp_path, 1, plan(), []) == ([], "the diagnosis proposes no setting that was not tried")


def test_runs_of_earlier_rounds_count(tmp_path: Path) -> None:
    before = tmp_path / "rounds" / "1"
    before.mkdir(parents=True)
    document = {"schema": "tracelock/plan/1", "runs": [{}] * 9}
    (before / "plan.json").write_text(json.dumps(document))
    chosen, _ = within_limits(tmp_path, 2, plan(max_runs=15), PROPOSALS)
    assert len(chosen) == 1


def test_the_board_takes_up_runs_that_a_round_adds(tmp_path: Path) -> None:
    class Layout:
        base = str(tmp_path)
        plan = type("Plan", (), {"runs": (), "study": type("Study", (), {"repeats": 2})})

        def runs(self, file: str) -> list[str]:
            return []

    board = Board(Layout())  # type: ignore[arg-type]
    assert board.news() == []
    folder = tmp_path / "rounds" / "1"
    (folder / "runs" / "e" / "v" / "1").mkdir(parents=True)
    runs = [{"environment": "e", "variant": "v", "repeat": 1, "order": 0}]
    (folder / "plan.json").write_text(json.dumps({"schema": "tracelock/plan/1", "repeats": 2, "runs": runs}))
    assert board.news() == []
    (folder / "runs" / "e" / "v" / "1" / "run.json").write_text("{}")
    assert board.news() == ["remedy 1: v (1/2)"]
    assert board.news() == []
