"""Whole runs, as a user makes them: what is written, and what failure says."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import torch
from runner_support import Program, command, environment, make_spec, read, visible

from tracelock.errors import TracelockError
from tracelock.io import file_digest
from tracelock.runner.process import usable_cores
from tracelock.runner.run import Request
from tracelock.runner.run import run as run_here
from tracelock.runner.settings import defaults
from tracelock.runner.workloads.tables import IMAGES

# Newer Pythons warn of what DataLoader does by default: it forks a process that has threads.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


def at(document: dict[str, Any], path: str) -> Any:
    """Return the value at a key path."""
    for key in path.split("."):
        document = document[key]
    return document


def made_here(spec: Path, output: Path) -> dict[str, Any]:
    """Make a run in this process, which spares the import of torch, and return its run.json."""
    return read(run_here(Request(spec, 1, output)).parent)


def nulls(value: Any, path: str = "") -> set[str]:
    """Return the key paths of all values that are null, settings apart."""
    if isinstance(value, dict):
        return set().union(
            *(nulls(item, f"{path}.{key}".lstrip(".")) for key, item in value.items() if key != "settings")
        )
    return {path} if value is None else set()


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Put back what a run in this process sets."""
    threads = torch.get_num_threads()
    path = list(sys.path)
    yield
    torch.set_num_threads(threads)
    sys.path[:] = path


@pytest.fixture(scope="module")
def images_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return (spec.json, folder) of one real run of the images workload with two loading processes."""
    folder = tmp_path_factory.mktemp("images run")
    spec = make_spec(
        folder,
        workload="tracelock.runner.workloads.images:build",
        variant="num_workers=2",
        settings={
            "batch_size": 8,
            "num_workers": 2,
            "images": 32,
            "image_size": 64,
            "crop_size": 32,
            "pin_memory": True,
        },
        timing={"warmup_steps": 3, "steps": 12},
        profiler={
            "wait": 1,
            "warmup": 1,
            "active": 3,
            "record_shapes": True,
            "profile_memory": True,
            "with_stack": True,
        },
    )
    done = subprocess.run(
        command(spec, folder / "1", "--tensorboard", "--token", "job-12.0"),
        env={**environment(folder / "locks"), "OMP_NUM_THREADS": "7", "MKL_NUM_THREADS": "7"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{folder / '1' / 'run.json'}\n"
    assert "num_workers=2 [1]: timed 12 steps: mean" in done.stderr
    return spec, folder / "1"


def test_every_field_of_run_json(images_run: tuple[Path, Path]) -> None:
    spec, folder = images_run
    run = read(folder)
    expected = {
        "schema": "tracelock/run/1",
        "experiment": "tiny",
        "environment": "driver",
        "variant": "num_workers=2",
        "repeat": 1,
        "digest": "ab12",
        "spec_digest": file_digest(spec),
        "token": "job-12.0",
        "host": os.uname().nodename,
        "python": ".".join(map(str, sys.version_info[:3])),
        "torch": torch.__version__,
        "threads": 1,
        "seed": 7,
        "cores": usable_cores(),
        "epochs": 5,  # 3 + 12 + 5 steps of 4 a epoch
    }
    assert {key: run[key] for key in expected} == expected
    assert set(run) == {
        *expected, "started", "ended", "device", "environment_check", "settings", "warmup", "timed", "profiled",
        "memory", "samples", "unknown", "warnings",
    }  # fmt: skip
    started, ended = (datetime.fromisoformat(run[key]) for key in ("started", "ended"))
    assert started.utcoffset() == ended.utcoffset() == timedelta(0)
    assert started < ended <= datetime.now(timezone.utc)
    assert run["device"]["type"] == "cpu"
    assert run["device"]["name"]
    changed = {"batch_size": 8, "num_workers": 2, "images": 32, "image_size": 64, "crop_size": 32, "pin_memory": True}
    assert run["settings"] == {**defaults(IMAGES), **changed, "threads": 1}
    assert run["warnings"] == ["pin_memory has no effect without a GPU"]


def test_the_figures_of_run_json_fit_together(images_run: tuple[Path, Path]) -> None:
    run = read(images_run[1])
    timed, profiled, memory = run["timed"], run["profiled"], run["memory"]
    assert run["warmup"]["steps"] == 3
    assert run["warmup"]["duration_us"] > 0
    assert timed["steps"] == len(timed["step_us"]) == len(timed["loading_us"]) == len(timed["loss"]) == 12
    assert all(0 < loading < step for loading, step in zip(timed["loading_us"], timed["step_us"], strict=True))
    assert 0.98 * timed["duration_us"] < sum(timed["step_us"]) < timed["duration_us"]
    assert timed["epoch_starts"] == [1, 5, 9]  # epochs of 4 steps, 3 of which the warm-up took
    assert timed["samples"] == 96
    assert timed["throughput_per_s"] == pytest.approx(96e6 / timed["duration_us"])
    assert timed["stopped_by"] is profiled["stopped_by"] is None
    assert profiled["steps"] == len(profiled["step_us"]) == 3
    mean = sum(timed["step_us"]) / 12
    assert profiled["overhead_ratio"] == pytest.approx(sum(profiled["step_us"]) / 3 / mean)
    assert 100e6 < memory["peak_rss_bytes"] < memory["peak_tree_rss_bytes"] < 10e9
    assert started_and_ended(run) * 1e6 > timed["duration_us"] + run["warmup"]["duration_us"]


def started_and_ended(run: dict[str, Any]) -> float:
    return (datetime.fromisoformat(run["ended"]) - datetime.fromisoformat(run["started"])).total_seconds()


def test_whatever_is_null_says_why_and_nothing_else_does(images_run: tuple[Path, Path]) -> None:
    run = read(images_run[1])
    no_gpu = {
        "device.index",
        "device.uuid",
        "timed.device_step_us",
        "profiled.device_step_us",
        "memory.peak_allocated_bytes",
        "memory.peak_reserved_bytes",
    }
    no_check = {f"environment_check.{key}" for key in ("digest", "locked", "unlocked")}
    assert {path for path, why in run["unknown"].items() if why == "the run had no GPU"} == no_gpu
    assert set(run["unknown"]) == no_gpu | no_check
    assert nulls(run) - {"timed.stopped_by", "profiled.stopped_by"} == no_gpu | no_check
    assert all(at(run, path) is None for path in run["unknown"])


def test_the_samples_are_those_of_the_timed_part(images_run: tuple[Path, Path]) -> None:
    folder = images_run[1]
    run = read(folder)
    with (folder / run["samples"]["file"]).open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == run["samples"]["columns"]
    assert len(rows) == run["samples"]["count"] >= 1
    assert float(rows[-1]["time_s"]) <= run["timed"]["duration_us"] / 1e6 + 0.5
    assert max(len(row["children_rss_bytes"].split()) for row in rows) == 2
    assert run["samples"]["cpu_s"] < 0.2 * run["timed"]["duration_us"] / 1e6 + 0.05


def test_the_trace_has_steps_labels_loading_and_stacks(images_run: tuple[Path, Path]) -> None:
    folder = images_run[1]
    run = read(folder)
    path = folder / run["profiled"]["trace"]
    assert path.stat().st_size == run["profiled"]["trace_bytes"]
    with gzip.open(path, "rt") as stream:
        rows = json.load(stream)["traceEvents"]
    names = [str(row.get("name")) for row in rows if row.get("ph") == "X"]
    assert sorted(name for name in names if name.startswith("ProfilerStep")) == [f"ProfilerStep#{n}" for n in (2, 3, 4)]
    for label in ("data_loading", "forward_pass", "backward_pass", "Optimizer.step#SGD.step"):
        assert names.count(label) == 3, label
    assert names.count("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__") == 3
    assert any(row.get("cat") == "python_function" for row in rows)
    assert any(row.get("name") == "[memory]" for row in rows)
    assert any("Input Dims" in row.get("args", {}) for row in rows)


def test_the_trace_has_the_name_that_tensorboard_knows(images_run: tuple[Path, Path]) -> None:
    folder = images_run[1]
    name = read(folder)["profiled"]["tensorboard_trace"]
    assert re.fullmatch(re.escape(os.uname().nodename) + r"_\d+\.\d+\.pt\.trace\.json\.gz", name)
    assert (folder / name).read_bytes() == (folder / "trace.json.gz").read_bytes()
    assert visible(folder) == {"run.json", "samples.csv", "trace.json.gz", "log.txt", name}


def test_the_log_holds_what_was_said(images_run: tuple[Path, Path]) -> None:
    assert re.search(r"^\d\d:\d\d:\d\d timed 12 steps: mean", (images_run[1] / "log.txt").read_text(), re.MULTILINE)


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
        ({"settings": {"fail_at": 4}}, 1, "the run failed: ValueError: the step is broken (traceback in "),
        ({"settings": {"fail_at": 11}}, 1, "the run failed: ValueError: the step is broken (traceback in "),
        (
            {"settings": {"item_fails": True, "num_workers": 1}},
            1,
            "ValueError: Caught ValueError in DataLoader worker process 0. ValueError: item is broken (traceback",
        ),
        ({"settings": {"result": "raises"}}, 1, "the run failed: RuntimeError: no such data (traceback in "),
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
        assert visible(out) == {"log.txt"}
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
    assert failed.stderr.startswith("run_workload: error: the run failed: ValueError: the step is broken (traceback in")


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
