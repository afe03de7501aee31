"""Scripts that end in their own ways, and launchers: exit code, output and signals are as without us."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from scripts_support import CASES, run_alone, run_case

PROFILE = [sys.executable, "-m", "tracelock.cli", "profile"]
SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.mark.parametrize("end", ["exit", "hard", "raise"])
def test_exit_code_and_output_are_the_scripts_own(end: str, tmp_path: Path) -> None:
    words = ["plain.py", "--end", end, "--epochs", "1"]
    seen = run_case(tmp_path, *words)
    assert (seen.exit_code, seen.output) == run_alone(*words)
    assert [process.steps for process in seen.found] == [seen.own["steps"]]


def test_a_script_too_short_to_be_timed_keeps_its_count(tmp_path: Path) -> None:
    seen = run_case(tmp_path, "plain.py", "--epochs", "1", "--batches", "2")
    assert [process.steps for process in seen.found] == [2]
    assert seen.record["timed"]["steps"] == 0
    assert seen.record["stopped_by"] == "the end of the script"


def test_a_window_cut_by_the_end_keeps_its_whole_steps(tmp_path: Path) -> None:
    seen = run_case(tmp_path, "plain.py", "--epochs", "1", "--batches", "20", warmup=3, timed=10, active=30)
    assert (seen.record["timed"]["steps"], seen.record["window"]["steps"]) == (10, 6)
    assert seen.record["stopped_by"] == "the end of the script"


def test_stop_after_ends_the_script_when_the_window_is_recorded(tmp_path: Path) -> None:
    seen = run_case(tmp_path, "plain.py", "--epochs", "1000", stop_after=True, warmup=2, timed=5, active=2)
    assert (seen.exit_code, seen.found[0].steps, seen.output) == (0, 10, "")


def test_two_ranks_time_and_record_the_same_steps(tmp_path: Path) -> None:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    seen = run_case(tmp_path, "ddp.py", launcher=launcher)
    assert (seen.exit_code, seen.own["steps"]) == (0, 40), seen.output
    assert [process.record["rank"] for process in seen.found] == [0, 1]
    assert [process.steps for process in seen.found] == [40, 40]
    first, second = (process.record["schedule"] for process in seen.found)
    assert first == second
    assert {trace["distributedInfo"]["rank"] for trace in seen.traces.values()} == {0, 1}
    assert [seen.marked_steps(place) for place in (0, 1)] == [3, 3]


def test_ranks_that_the_script_spawns_itself_are_ranks(tmp_path: Path) -> None:
    seen = run_case(tmp_path, str(CASES.parents[2] / "examples/scripts/imagenet_ddp.py"))
    assert seen.exit_code == 0, seen.output
    assert [(process.record["rank"], process.record["world_size"]) for process in seen.found] == [(0, 2), (1, 2)]
    assert [process.steps for process in seen.found] == [80, 80]


def test_a_job_script_is_seen_through(tmp_path: Path) -> None:
    seen = run_case(tmp_path, launcher=["./run.sh"])
    assert (seen.exit_code, seen.output.split("\n")[0]) == (0, "starting")
    assert [process.steps for process in seen.found] == [60]


def test_a_forked_child_is_a_process_of_its_own(tmp_path: Path) -> None:
    seen = run_case(tmp_path, "processes.py", "fork")
    assert seen.exit_code == 0, seen.output
    assert "steps 120" in seen.output, seen.output
    assert sorted(process.steps for process in seen.found) == [40, 120]


@pytest.mark.parametrize("name", ["__main__:predict", "processes:predict"])
def test_a_named_function_is_a_step(name: str, tmp_path: Path) -> None:
    seen = run_case(tmp_path, "processes.py", "predict", step=name)
    assert [process.steps for process in seen.found] == [40]
    assert (seen.record["source"], seen.marked_steps()) == ("function", 3)
    assert "forward_pass" in seen.labels()


def test_the_scripts_own_profiler_stays_in_charge(tmp_path: Path) -> None:
    seen = run_case(tmp_path, "processes.py", "profiler", str(tmp_path))
    assert (seen.exit_code, seen.found[0].steps, seen.record["source"]) == (0, 40, "optimizer")
    # 20 steps come before its first one that costs time.
    assert seen.record["timed"]["steps"] + seen.record["warmup"]["steps"] == 20
    assert seen.record["own_profiler"]
    mine = json.loads((tmp_path / "mine.json").read_text())
    assert seen.record["window"]["trace"] == "trace.json"
    assert sum(str(event.get("name")).startswith("ProfilerStep#") for event in mine["traceEvents"]) == 2


def test_nothing_seen_is_told_with_what_to_do(tmp_path: Path) -> None:
    done = _profile(tmp_path / "out", "processes.py", "predict")
    assert done.returncode == 0
    said = " ".join(done.stderr.split())
    assert "No step was seen" in said
    assert "--step __main__:train_step" in said
    assert list(tmp_path.iterdir()) == []  # no folder without a result


def test_the_answer_comes_on_stderr_and_the_output_is_untouched(tmp_path: Path) -> None:
    done = _profile(tmp_path / "out", "plain.py", "--end", "exit", "--accumulate", "2")
    assert (done.returncode, done.stdout) == (3, "steps 30\n")
    assert "30 steps by optimizer.step(), exit code 3" in done.stderr
    assert "waiting for DataLoaders" in done.stderr
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names >= {"run.json", "samples.csv", "trace.json.gz", "analysis.json"}
    assert not any(name.startswith(".") for name in names)


def test_a_loader_of_the_scripts_own_is_told(tmp_path: Path) -> None:
    done = _profile(tmp_path / "out", "feeding.py", "generator")
    assert "that no DataLoader explains" in " ".join(done.stderr.split())


def test_a_signal_reaches_the_script_and_comes_back(tmp_path: Path) -> None:
    command = [*PROFILE, "-o", str(tmp_path / "out"), "--", sys.executable, "plain.py", "--epochs", "100000"]
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, cwd=CASES, env=environment, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not list((tmp_path / "out").glob(".outside-*/*/record.json")) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM
    assert b"steps by optimizer.step()" in said
    assert list((tmp_path / "out").glob(".outside-*")) == []


def test_a_program_that_is_none_is_one_line(tmp_path: Path) -> None:
    command = [*PROFILE, "-o", str(tmp_path / "out"), "--", "plain.py"]
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS)}
    done = subprocess.run(command, cwd=CASES, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 127
    assert done.stderr == "tracelock: error: plain.py: is no program (tracelock profile -- python plain.py)\n"


def _profile(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [*PROFILE, "-o", str(folder), "--", sys.executable, *words]
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS), "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=CASES, capture_output=True, text=True, check=False, env=environment)
