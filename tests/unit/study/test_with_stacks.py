"""When one recording more is planned, with Python stacks, and what it is to be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from study_tree import StudyTree, Variant

from tracelock.io import read_json, write_json
from tracelock.study.with_stacks import placed, plan_stacks


def made(folder: Path, code: str, **keys: Any) -> dict[str, Any]:
    """Return the plan of the recording with stacks for a study whose runs all have the finding `code`."""
    StudyTree([Variant({"num_workers": 0}, code=code), Variant({"num_workers": 1}, code=code)]).write(folder)
    plan = read_json(folder / "plan.json", "plan")
    write_json(folder / "plan.json", {**plan, "profiler": {"with_stack": False}, **keys})
    base = {"schema": "tracelock/spec/1", "digest": "x", "environment": "default", "experiment": "demo"}
    spec = {**base, "variant": plan["baseline"], "baseline": True, "profiler": {"with_stack": False}, "seed": 3}
    write_json(folder / "runs" / "default" / plan["baseline"] / "spec.json", spec)
    plan_stacks(folder)
    return read_json(folder / "stacks" / "plan.json", "plan")


def test_a_cause_in_the_users_code_is_recorded_once_more(tmp_path: Path) -> None:
    plan = made(tmp_path, "synchronization")
    assert [(run["environment"], run["variant"], run["repeat"]) for run in plan["runs"]] == [
        ("default", plan["baseline"], 1)
    ]
    spec = read_json(tmp_path / "stacks" / "runs" / "default" / plan["baseline"] / "spec.json", "spec")
    assert spec["profiler"] == {"with_stack": True}
    assert (spec["variant"], spec["seed"]) == (plan["baseline"], 3)
    assert spec["digest"] != "x"
    assert placed(tmp_path, "default", plan["baseline"], "synchronization") is None  # not recorded yet


@pytest.mark.parametrize(
    ("code", "keys"),
    [
        ("matmul-precision", {}),  # a setting: no line of the user's tells more
        ("synchronization", {"stacks": False}),
        ("synchronization", {"profiler": {"with_stack": True}}),  # all runs have stacks already
    ],
)
def test_nothing_is_recorded_that_can_name_no_line(tmp_path: Path, code: str, keys: dict[str, Any]) -> None:
    plan = made(tmp_path, code, **keys)
    assert plan["runs"] == []
    assert plan["variants"] == []
    assert not (tmp_path / "stacks" / "runs").exists()
