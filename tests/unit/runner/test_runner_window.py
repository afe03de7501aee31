"""The profiled window: real traces of PyTorch, their steps, and what a bound does to them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tracelock.runner.loop import Budget, Loop
from tracelock.runner.protocol import Limits, Profiling
from tracelock.runner.window import record_window
from tracelock.runner.workload import Workload, label

UNBOUNDED = Limits(None, None, None)


def plan(wait: int, warmup: int, active: int, repeat: int = 1, *, shapes: bool = False) -> Profiling:
    return Profiling(wait, warmup, active, repeat, record_shapes=shapes, profile_memory=False, with_stack=False)


def make_loop(limits: Limits = UNBOUNDED) -> Loop:
    weight = torch.ones(8, 8)

    def step(batch: torch.Tensor) -> torch.Tensor:
        with label("forward_pass"):
            return (batch @ weight).sum()

    return Loop(Workload([torch.ones(2, 8)] * 3, step), "cpu", Budget(limits))


def rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt") as stream:
        return json.load(stream)["traceEvents"]  # type: ignore[no-any-return]


def steps_of(path: Path) -> list[str]:
    """Return the names of the steps of a trace, in order."""
    found = [row for row in rows(path) if str(row.get("name")).startswith("ProfilerStep") and row.get("ph") == "X"]
    return [row["name"] for row in sorted(found, key=lambda row: row["ts"])]


def test_the_trace_holds_the_active_steps_and_their_labels(tmp_path: Path) -> None:
    window = record_window(make_loop(), plan(1, 1, 3, shapes=True), tmp_path, None)
    assert [trace.name for trace in window.traces] == ["trace.json.gz"]
    assert sorted(tmp_path.iterdir()) == window.traces
    assert steps_of(window.traces[0]) == ["ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#4"]
    names = [row.get("name") for row in rows(window.traces[0])]
    assert names.count("data_loading") == names.count("forward_pass") == 3
    assert any("Input Dims" in row.get("args", {}) for row in rows(window.traces[0]))
    assert len(window.step_us) == 3
    assert window.device_step_us is None
    assert window.stopped_by is None


def test_the_host_times_are_those_of_the_steps_in_the_trace(tmp_path: Path) -> None:
    window = record_window(make_loop(), plan(0, 1, 2), tmp_path, None)
    in_trace = [row["dur"] for row in rows(window.traces[0]) if str(row.get("name")).startswith("ProfilerStep")]
    for measured, recorded in zip(
        window.step_us, sorted(in_trace, reverse=window.step_us[0] > window.step_us[1]), strict=True
    ):
        assert measured <= recorded


# PyTorch says so at the second cycle; each trace is written before.
@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events")
def test_each_cycle_has_a_trace_of_its_own(tmp_path: Path) -> None:
    window = record_window(make_loop(), plan(1, 1, 2, repeat=2), tmp_path, None)
    assert [trace.name for trace in window.traces] == ["trace.json.gz", "trace.2.json.gz"]
    assert [len(steps_of(trace)) for trace in window.traces] == [2, 2]
    assert len(window.step_us) == 4


@pytest.mark.parametrize(("max_steps", "recorded"), [(5, 3), (4, 2), (3, 1), (2, 0), (1, 0)])
def test_a_cut_window_holds_whole_steps_only(tmp_path: Path, max_steps: int, recorded: int) -> None:
    window = record_window(make_loop(Limits(None, max_steps, None)), plan(1, 1, 3), tmp_path, None)
    assert window.stopped_by == (None if recorded == 3 else "max_steps")
    assert len(window.step_us) == recorded
    assert len(window.traces) == (recorded > 0)
    for trace in window.traces:
        assert steps_of(trace) == [f"ProfilerStep#{number}" for number in range(2, 2 + recorded)]


def test_a_trace_beyond_the_bound_is_replaced_by_one_that_fits(tmp_path: Path) -> None:
    whole = record_window(make_loop(), plan(0, 1, 200), tmp_path, None)
    limit = 0.6 * whole.trace_bytes / 1e6
    window = record_window(make_loop(), plan(0, 1, 200), tmp_path, limit)
    assert window.stopped_by == "max_trace_mb"
    assert 50 <= len(window.step_us) == len(steps_of(window.traces[0])) < 120
    assert window.trace_bytes <= limit * 1e6
    assert "recorded" in window.warnings[0]


def test_a_bound_that_nothing_fits_leaves_no_trace(tmp_path: Path) -> None:
    window = record_window(make_loop(), plan(0, 1, 1), tmp_path, 0.000_001)
    assert window.traces == []
    assert list(tmp_path.iterdir()) == []
    assert window.stopped_by == "max_trace_mb"
    assert "over max_trace_mb" in window.warnings[0]
    assert len(window.step_us) == 1
