"""The whole way: a study file becomes a report, once."""

from __future__ import annotations

import csv
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests_support import files_below

pytestmark = [pytest.mark.workflow, pytest.mark.slow]


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_study_runs_to_its_report_and_then_nothing_reruns(snakemake, tiny: Path) -> None:
    snakemake()
    base = tiny.parent / "results" / "tiny"
    runs = [read(path) for path in sorted(base.glob("runs/*/*/*/run.json"))]
    assert len(runs) == 4
    assert {run["schema"] for run in runs} == {"tracelock/run/1"}
    for run in runs:
        assert len(run["timed"]["step_us"]) == run["timed"]["steps"] == 4
        assert all(duration > 0 for duration in run["timed"]["step_us"])
    intervals = sorted((run["started"], run["ended"]) for run in runs)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(intervals))
    plan = read(base / "plan.json")
    order = [(item["variant"], item["repeat"]) for item in sorted(plan["runs"], key=lambda item: item["order"])]
    seen = [(run["variant"], run["repeat"]) for run in sorted(runs, key=lambda run: run["started"])]
    assert seen == order
    for analysis in map(read, base.glob("runs/*/*/*/analysis.json")):
        assert analysis["schema"] == "tracelock/analysis/1"
        assert analysis["step"]["count"] == 2
        parts = analysis["step"]["breakdown_us"]
        assert sum(parts.values()) == pytest.approx(analysis["step"]["mean_us"], abs=0.01)
    with (base / "tables" / "runs.csv").open(encoding="utf-8", newline="") as stream:
        assert len(list(csv.DictReader(stream))) == 4
    assert (base / "report.html").read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")
    before = files_below(base)
    again = snakemake()
    assert "Nothing to be done" in again.stdout + again.stderr
    assert files_below(base) == before


def test_a_dry_run_needs_neither_conda_nor_gpu_and_writes_nothing(snakemake, tiny: Path) -> None:
    done = snakemake("--dry-run")
    assert "run" in done.stdout
    assert not (tiny.parent / "results").exists()


def test_a_variant_added_later_leaves_the_measured_ones_alone(snakemake, tiny: Path) -> None:
    snakemake()
    base = tiny.parent / "results" / "tiny"
    before = {path: path.stat().st_mtime_ns for path in base.glob("runs/*/*/*/run.json")}
    tiny.write_text(tiny.read_text(encoding="utf-8").replace("[0, 1]", "[0, 1, 2]"), encoding="utf-8")
    snakemake()
    after = {path: path.stat().st_mtime_ns for path in base.glob("runs/*/*/*/run.json")}
    assert len(after) == 6
    assert before.items() <= after.items()


def test_a_bad_study_stops_with_its_problems_before_anything_runs(snakemake, tiny: Path) -> None:
    tiny.write_text(tiny.read_text(encoding="utf-8").replace("repeats: 2", "repeets: 2\nseed: x"), encoding="utf-8")
    done = snakemake(check=False)
    assert done.returncode != 0
    assert "tracelock: error: tiny.yaml:10: repeets: unknown key (did you mean 'repeats'?)" in done.stderr
    assert 'tracelock: error: tiny.yaml:11: seed: is "x", expected a whole number' in done.stderr
    assert "Traceback" not in done.stderr


def test_a_killed_study_leaves_nothing_half_written_and_goes_on(root: Path, tiny: Path, snakemake) -> None:
    command = [sys.executable, "-m", "tracelock.cli", "study", "run", str(tiny)]
    environment = {**os.environ, "PYTHONPATH": str(root / "scripts")}
    base = tiny.parent / "results" / "tiny"
    process = subprocess.Popen(
        command, cwd=tiny.parent, env=environment, start_new_session=True, stdout=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while not list(base.glob("runs/*/*/*/run.json")):
        assert time.monotonic() < deadline, "no run finished in two minutes"
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    finished = {path: path.read_bytes() for path in base.glob("runs/*/*/*/run.json")}
    for content in finished.values():
        assert json.loads(content)["schema"] == "tracelock/run/1"
    snakemake()
    assert len(list(base.glob("runs/*/*/*/run.json"))) == 4
    assert {path: path.read_bytes() for path in finished} == finished


def test_the_command_prints_the_plan_and_the_answer(root: Path, tiny: Path) -> None:
    command = [sys.executable, "-m", "tracelock.cli", "study", "run", str(tiny)]
    environment = {**os.environ, "PYTHONPATH": str(root / "scripts"), "NO_COLOR": "1"}
    call = {"cwd": tiny.parent, "env": environment, "capture_output": True, "text": True, "check": False}
    first = subprocess.run(command, **call)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "2 variants × 2 repeats × 1 environment = 4" in first.stdout
    assert first.stdout.count(" done: ") == 4
    assert "report.html" in first.stdout
    second = subprocess.run(command, **call)
    assert "nothing to run" in second.stdout
    assert "report.html" in second.stdout
