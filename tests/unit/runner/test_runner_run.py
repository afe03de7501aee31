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
from runner_support import command, environment, make_spec, read, visible

from tracelock.io import file_digest
from tracelock.runner.lease import core_text
from tracelock.runner.process import affinity, usable_cores
from tracelock.runner.settings import defaults
from tracelock.runner.workloads.tables import IMAGES

# Newer Pythons warn of what DataLoader does by default: it forks a process that has threads.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


def at(document: dict[str, Any], path: str) -> Any:
    """Return the value at a key path."""
    for key in path.split("."):
        document = document[key]
    return document


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
        "affinity": core_text(affinity()),
        "exclusive": "device",
        "cluster": None,
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
    known_why = no_gpu | no_check | {"cluster"}
    assert set(run["unknown"]) == known_why
    assert nulls(run) - {"timed.stopped_by", "profiled.stopped_by"} == known_why
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
