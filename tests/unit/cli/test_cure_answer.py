"""What ``tracelock cure`` says of the changes that were tried."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tracelock.cli._cure import Asked, answer, losses, study_of
from tracelock.io import schema
from tracelock.study.load import load_plan

TRIED = {
    "to": "num_workers=2",
    "finding": "dataloader-bound",
    "settings": {"num_workers": 2, "batch_size": 8},
    "expect": "",
    "metric": "time",
    "runs": 3,
    "ratio": 0.6,
    "ratio_low": 0.55,
    "ratio_high": 0.7,
    "verdict": "helped",
    "why": "",
}


def write(path: Path, value: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def a_run(losses: list[list[float]], changes: list[dict[str, Any]]) -> dict[str, Any]:
    return {"schema": schema("run"), "script": {"losses": losses, "changes": changes}}


def test_a_change_that_helped_names_the_line_and_compares_the_losses(tmp_path: Path) -> None:
    rounds = [{"round": 1, "from": "base", "stopped": None, "tried": [TRIED]}]
    write(tmp_path / "remedies.json", {"schema": schema("remedies"), "rounds": rounds, "stopped": ""})
    write(tmp_path / "runs/default/base/1/run.json", a_run([[0, 2.0], [1, 1.0]], []))
    changes = [
        {"setting": "num_workers", "from": 0, "to": 2, "place": "/a/train.py:14", "count": 1},
        {"setting": "batch_size", "from": 4, "to": 8, "place": "/a/train.py:14", "count": 1},
    ]
    write(tmp_path / "rounds/1/runs/default/num_workers=2/1/run.json", a_run([[0, 2.0], [1, 1.1]], changes))
    said = "\n".join(answer(tmp_path))
    assert "helped, 40.0 % less time a step (+30 to +45 % less, 3 runs)" in said
    assert "/a/train.py:14: num_workers=0 → 2" in said
    assert "changes what is computed (batch size): losses of the first 2 steps differ by up to 10.0 %" in said


def test_nothing_to_try_says_why(tmp_path: Path) -> None:
    rounds = [{"round": 1, "from": "base", "stopped": "nothing", "tried": []}]
    write(tmp_path / "remedies.json", {"schema": schema("remedies"), "rounds": rounds, "stopped": "nothing"})
    assert list(answer(tmp_path)) == ["Nothing to try: nothing."]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ([[0, 1.0]], [[0, 1.0000001]], "are the same within"),
        ([[0, 1.0]], [[0, 2.0]], "differ by up to 100.0 %"),
        ([], [[0, 2.0]], "no losses to compare"),
    ],
)
def test_losses(before: list[list[float]], after: list[list[float]], said: str) -> None:
    assert said in losses(a_run(before, []), a_run(after, []))


def test_the_study_of_a_cure_is_sound(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(json.dumps(study_of(Asked(["python", "a.py"], None, 3, 2, 30.0, 3, 20, 300.0), "a")))
    plan = load_plan(file)
    assert [variant.id for variant in plan.variants] == ["base"]
    assert plan.study.remedies.test
