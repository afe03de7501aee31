"""Runs beside the plan: disturbed ones once more, and as many as a precision asks for, within its budget."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from study_tree import StudyTree, Variant

from tracelock.io import read_json, write_json
from tracelock.study.compare import compare
from tracelock.study.disturbed import disturbance
from tracelock.study.more import plan_more


def made(folder: Path, scatter: float, repeats: int = 3, **keys: object) -> Path:
    variants = [Variant({"num_workers": count}, 100_000 - 30_000 * count, scatter=scatter) for count in (0, 1)]
    StudyTree(variants, repeats=repeats).write(folder)
    plan = read_json(folder / "plan.json", "plan")
    write_json(folder / "plan.json", {**plan, **keys})
    return folder


def wave(folder: Path, number: int = 1) -> dict:
    plan_more(folder, number)
    return read_json(folder / "more" / f"{number}.json", "more")


def samples(folder: Path, machine: float, own: float, rows: int = 20, throttle: str = "none") -> None:
    lines = [f"{machine},{own},{throttle}" for _ in range(rows)]
    (folder / "samples.csv").write_text("cpu_percent,process_cpu_percent,gpu_throttle\n" + "\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("machine", "own", "rows", "disturbed"),
    [
        (98, 100, 20, True),  # 2 cores: 1.96 busy, the run has one
        (98, 195, 20, False),  # the run's own work fills the machine
        (60, 10, 20, False),  # others work, and nobody lacks a core
        (98, 100, 5, False),  # too few samples to say so
    ],
)
def test_load_of_others(tmp_path: Path, machine: float, own: float, rows: int, disturbed: bool) -> None:
    samples(tmp_path, machine, own, rows)
    told = disturbance(tmp_path, 2)
    assert bool(told) == disturbed
    assert disturbance(tmp_path, None) is None
    if told:
        assert told == "other processes used 48 % of the 2 cores, which were busy"


def test_load_of_others_that_comes_in_bursts(tmp_path: Path) -> None:
    """Means hide it: over all samples the machine below is two thirds busy."""
    quiet, burst = "52,100,none", "99,100,none"
    for bursts, told in ((8, True), (4, True), (3, False)):
        rows = [burst] * bursts + [quiet] * (20 - bursts)
        (tmp_path / "samples.csv").write_text("cpu_percent,process_cpu_percent,gpu_throttle\n" + "\n".join(rows) + "\n")
        found = disturbance(tmp_path, 2)
        expected = f"other processes used 49 % of the 2 cores, which were busy, in {5 * bursts} % of the samples"
        assert found == (expected if told else None)


def test_throttling_and_no_samples(tmp_path: Path) -> None:
    assert disturbance(tmp_path, 2) is None
    samples(tmp_path, 10, 10, throttle="sw_thermal_slowdown")
    assert "slowed down in 100 % of the samples (sw_thermal_slowdown)" in (disturbance(tmp_path, 2) or "")
    samples(tmp_path, 10, 10, throttle="gpu_idle")
    assert disturbance(tmp_path, 2) is None


def test_a_disturbed_run_is_marked_and_made_once_more(tmp_path: Path) -> None:
    folder = made(tmp_path, 0.01)
    write_json(folder / "envs/default/machine.json", {"schema": "tracelock/machine/1", "cpu": {"cores_logical": 2}})
    samples(folder / "runs/default/num_workers=1/2", 99, 100)
    (marked,) = compare(folder).disturbed()
    assert (marked.variant, marked.repeat) == ("num_workers=1", 2)
    (run,) = wave(folder)["runs"]
    assert (run["environment"], run["variant"], run["repeat"]) == ("default", "num_workers=1", 4)
    assert "other processes used" in run["why"]
    assert wave(folder, 2)["runs"] == []  # once
    assert [run.reason for run in compare(folder).missing] == ["was not made"]


def test_nothing_is_repeated_where_the_whole_machine_is_busy_or_it_is_turned_off(tmp_path: Path) -> None:
    folder = made(tmp_path / "busy", 0.01)
    write_json(folder / "envs/default/machine.json", {"schema": "tracelock/machine/1", "cpu": {"cores_logical": 2}})
    for run in folder.glob("runs/*/*/*"):
        samples(run, 99, 100)
    assert wave(folder)["runs"] == []
    off = made(tmp_path / "off", 0.01, repeat_disturbed=False)
    write_json(off / "envs/default/machine.json", {"schema": "tracelock/machine/1", "cpu": {"cores_logical": 2}})
    samples(off / "runs/default/num_workers=1/2", 99, 100)
    assert wave(off)["runs"] == []


def test_precision_asks_for_runs_of_both_sides_until_the_budget_is_spent(tmp_path: Path) -> None:
    folder = made(tmp_path, 0.1, precision=0.03, max_repeats=5)
    runs = wave(folder)["runs"]
    assert Counter(run["variant"] for run in runs) == {"num_workers=0": 2, "num_workers=1": 2}
    assert {run["repeat"] for run in runs} == {4, 5}
    assert [run["order"] for run in runs] == list(range(4))
    spent = made(tmp_path / "spent", 0.1, repeats=5, precision=0.03, max_repeats=5)
    document = wave(spent)
    assert document["runs"] == []
    assert document["stopped"] == "max_repeats is 5: wider than asked: num_workers=1"


def test_narrow_intervals_ask_for_nothing(tmp_path: Path) -> None:
    document = wave(made(tmp_path, 0.001, precision=0.05, max_repeats=10))
    assert (document["runs"], document["stopped"]) == ([], "all intervals are as narrow as asked")


def test_bytes_are_stable(tmp_path: Path) -> None:
    folder = made(tmp_path, 0.1, precision=0.03, max_repeats=8)
    first = json.dumps(wave(folder))
    assert json.dumps(wave(folder)) == first
