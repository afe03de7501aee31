"""Whole runs: seeds, failures, bounds, and what is said of settings that nothing looks at."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import torch
from runner_support import TINY, Program, make_spec, read, visible

from tracelock.errors import TracelockError
from tracelock.runner.process import usable_cores
from tracelock.runner.run import Request
from tracelock.runner.run import run as run_here

# Newer Pythons warn of what DataLoader does by default: it forks a process that has threads.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


def started_and_ended(run: dict[str, Any]) -> float:
    return (datetime.fromisoformat(run["ended"]) - datetime.fromisoformat(run["started"])).total_seconds()


def made_here(spec: Path, output: Path) -> dict[str, Any]:
    """Make a run in this process, which spares the import of torch, and return its run.json."""
    return read(run_here(Request(spec, 1, output)).parent)


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Put back what a run in this process sets."""
    threads = torch.get_num_threads()
    path = list(sys.path)
    yield
    torch.set_num_threads(threads)
    sys.path[:] = path


@pytest.mark.parametrize("workers", [0, 2])
def test_the_same_seed_gives_the_same_losses_and_another_one_others(workers: int, tmp_path: Path) -> None:
    losses = []
    for number, seed in enumerate((7, 7, 8)):
        spec = make_spec(tmp_path / str(number), seed=seed, settings={"num_workers": workers})
        losses.append(made_here(spec, tmp_path / f"out{number}")["timed"]["loss"])
    assert losses[0] == losses[1] != losses[2]
    assert len(set(losses[0])) == 6


@pytest.mark.parametrize(
    ("changes", "code", "says"),
    [
        ({"settings": {"fail_at": 4}}, 1, f"the run failed: ValueError: the step is broken at {TINY}:"),
        ({"settings": {"fail_at": 11}}, 1, f"the run failed: ValueError: the step is broken at {TINY}:"),
        (
            {"settings": {"item_fails": True, "num_workers": 1}},
            1,
            "ValueError: Caught ValueError in DataLoader worker process 0. ValueError: item is broken at ",
        ),
        ({"settings": {"result": "raises"}}, 1, f"the run failed: RuntimeError: no such data at {TINY}:"),
        ({"settings": {"items": 2}}, 1, "the workload's loader gives no batch"),
        ({"settings": {"result": "nothing"}}, 2, "workload: returned NoneType, expected tracelock"),
        ({"settings": {"result": "no_step"}}, 2, "returned a Workload whose step is no function: 'no function'"),
        ({"settings": {"fail": 4}}, 2, "settings.fail: is not a setting of this workload (did you mean 'fail_at'?)"),
        ({"workload": "absent.py:build"}, 2, "workload: there is no file absent.py below "),
        ({"seed": -1, "device": "tpu"}, 2, "device: is 'tpu', expected auto or cpu or cuda"),
        ({"limits": {"max_duration_s": 0}}, 1, "max_duration_s leaves no time for a single timed step"),
    ],
)
def test_a_failure_is_one_line_an_exit_code_and_no_result(
    changes: dict[str, Any], code: int, says: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    with capfd.disabled(), pytest.raises(TracelockError) as caught:
        run_here(Request(make_spec(tmp_path, **changes), 1, out))
    assert caught.value.exit_code == code
    lines = [str(problem) for problem in caught.value.problems]
    assert len(lines) == len(changes)
    assert any(says in line for line in lines)
    assert not any("\n" in line for line in lines)
    if code == 1 or out.exists():
        assert visible(out) == {"failure.json", "log.txt"}
        assert "Traceback" in (out / "log.txt").read_text()


def test_the_program_reports_failures_in_one_line_each(tmp_path: Path, program: Program) -> None:
    out = tmp_path / "out"
    wrong = program(make_spec(tmp_path, seed=-1, device="tpu"), out)
    assert wrong.returncode == 2
    assert [line.partition(": error: ")[0] for line in wrong.stderr.splitlines()] == ["run_workload"] * 2
    assert not out.exists()
    failed = program(make_spec(tmp_path, settings={"fail_at": 4}), out)
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.count("\n") == 1
    assert failed.stderr.startswith(f"run_workload: error: the run failed: ValueError: the step is broken at {TINY}:")


def test_a_gpu_that_is_asked_for_and_absent_is_a_failure(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(TracelockError, match="device: is cuda, but torch") as caught:
        run_here(Request(make_spec(tmp_path, device="cuda"), 1, tmp_path / "out"))
    assert caught.value.exit_code == 1


def test_settings_that_nothing_looks_at_and_bounds_that_cut_are_named(tmp_path: Path) -> None:
    spec = make_spec(
        tmp_path,
        settings={"channels_last": True, "threads": None},
        timing={"warmup_steps": 2, "steps": 50},
        limits={"max_steps": 12},
    )
    run = made_here(spec, tmp_path / "out")
    assert run["warnings"] == [
        "the workload never looked at 'channels_last'",
        "max_steps cut the timed part to 6 of 50 steps",
    ]
    assert (run["timed"]["steps"], run["timed"]["stopped_by"], run["profiled"]["steps"]) == (6, "max_steps", 2)
    assert run["threads"] == usable_cores() == torch.get_num_threads()


def test_max_duration_bounds_a_slow_run_and_a_missing_trace_says_why(tmp_path: Path) -> None:
    spec = make_spec(tmp_path, settings={"sleep_s": 0.5}, timing={"steps": 99}, limits={"max_duration_s": 2})
    run = made_here(spec, tmp_path / "out")
    assert run["timed"]["stopped_by"] == "max_duration_s"
    assert 1 <= run["timed"]["steps"] <= 3
    assert started_and_ended(run) < 30
    if run["profiled"]["trace"] is None:
        assert run["profiled"]["stopped_by"] == "max_duration_s"
        assert "max_duration_s" in run["unknown"]["profiled.trace"]
        assert run["unknown"].keys() >= {"profiled.overhead_ratio", "profiled.trace_bytes"}
        assert "trace.json.gz" not in visible(tmp_path / "out")


def test_a_trace_over_its_bound_is_no_result_and_says_so(tmp_path: Path) -> None:
    run = made_here(make_spec(tmp_path, limits={"max_trace_mb": 0.0001}), tmp_path / "out")
    assert run["profiled"]["stopped_by"] == "max_trace_mb"
    assert run["profiled"]["trace"] is None
    assert run["unknown"]["profiled.trace"] == "max_trace_mb left no trace"
    assert run["profiled"]["step_us"]
    assert visible(tmp_path / "out") == {"run.json", "samples.csv", "log.txt"}
