"""Several ranks in one file: each is read as a rank, whatever ids they share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tracelock.analysis import analyze
from tracelock.analysis.processes import by_process
from tracelock.cli import build_app
from tracelock.trace import read_trace


def rank(pid: int, device: int, kernel_us: int, *, shift: int = 0, lane: int | None = None) -> list[dict[str, Any]]:
    """Return three steps of 1 ms of one rank, whose ids and names are those of every other."""
    rows: list[dict[str, Any]] = []
    place = {"pid": device if lane is None else lane, "tid": 7}
    for step in range(3):
        start, host = 1000 + 1000 * step + shift, {"ph": "X", "pid": pid, "tid": pid}
        mark = {"cat": "user_annotation", "name": f"ProfilerStep#{step + 1}", "ts": start, "dur": 990}
        call = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": start + 60, "dur": 5}
        rows += [host | mark, host | call | {"args": {"correlation": 50 + step}}]
        rows += [
            host | {"cat": "cpu_op", "name": f"aten::op{n}", "ts": start + 50 + 70 * n, "dur": 60} for n in range(9)
        ]
        args = {"device": device, "stream": 7, "correlation": 50 + step}
        work = {"ph": "X", "cat": "kernel", "name": "k", "ts": start + 100, "dur": kernel_us, "args": args}
        arrow = {"cat": "ac2g", "name": "ac2g", "id": 50 + step}
        rows += [work | place, arrow | {"ph": "s", "pid": pid, "tid": pid, "ts": start + 60}]
        rows.append(arrow | place | {"ph": "f", "ts": start + 100})
    return rows


def write(folder: Path, *ranks: list[dict[str, Any]]) -> Path:
    path = folder / "merged.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [row for rows in ranks for row in rows]}, indent=1))
    return path


@pytest.mark.parametrize("shift", [0, 400, 5_000_000])
def test_each_process_is_a_trace(tmp_path: Path, shift: int) -> None:
    """With steps at one time, half a step apart, and seconds apart."""
    trace = read_trace(write(tmp_path, rank(1, 0, 300), rank(11, 1, 500, shift=shift)))
    one, two = map(analyze, by_process(trace))
    for found, device, busy in ((one, 0, 900), (two, 1, 1500)):
        (gpu,) = found.gpus
        assert (gpu.id, gpu.compute_us, gpu.linked_share) == (device, busy, 1)
        assert (found.step.count, found.step.mean_us) == (3, 990)
        assert found.trace.warnings == ()
    assert (one.trace.rank, two.trace.rank) == (0, 1)


def test_devices_go_to_the_process_whose_launches_they_answer(tmp_path: Path) -> None:
    """The first process has the second device: its launches alone come before that device's work."""
    late = rank(1, 1, 300, shift=5_000_000)
    early = rank(11, 0, 500)
    one, two = map(analyze, by_process(read_trace(write(tmp_path, late, early))))
    assert [gpu.id for gpu in one.gpus] == [1]
    assert [gpu.id for gpu in two.gpus] == [0]


def test_one_process_is_the_trace_itself(tmp_path: Path) -> None:
    workers = [{"ph": "X", "pid": 7, "tid": 7, "cat": "cpu_op", "name": "aten::stack", "ts": 1200, "dur": 5}]
    trace = read_trace(write(tmp_path, rank(1, 0, 300), workers))
    assert by_process(trace) == [trace]


def test_the_command_tells_of_both(tmp_path: Path) -> None:
    path = write(tmp_path, rank(1, 0, 300), rank(11, 1, 500))
    result = CliRunner().invoke(build_app(["analyze"]), ["analyze", "--json", str(path)])
    assert result.exit_code == 0
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [document["trace"]["rank"] for document in found] == [0, 1]
    assert [document["gpus"][0]["compute_us"] for document in found] == [900, 1500]
    assert [Path(document["trace"]["file"]).name for document in found] == [
        "merged.json (process 1)",
        "merged.json (process 11)",
    ]


@pytest.mark.parametrize("shift", [0, 400])
def test_a_slim_file_holds_one_step_of_each(tmp_path: Path, shift: int) -> None:
    path, small = write(tmp_path, rank(1, 0, 300), rank(11, 1, 500, shift=shift)), tmp_path / "small.json"
    result = CliRunner().invoke(build_app(["slim"]), ["slim", str(path), str(small), "--steps", "1", "--from", "2"])
    assert result.exit_code == 0, result.output
    rows = json.loads(small.read_text())["traceEvents"]
    kernels = [(row["pid"], row["ts"]) for row in rows if row.get("cat") == "kernel"]
    assert sorted(kernels) == [(0, 2100), (1, 2100 + shift)]
    steps = [(row["pid"], row["name"]) for row in rows if row["name"].startswith("ProfilerStep")]
    assert sorted(steps) == [(1, "ProfilerStep#2"), (11, "ProfilerStep#2")]
    arrows = [(row["pid"], row["ph"]) for row in rows if row.get("cat") == "ac2g"]
    assert sorted(arrows) == [(0, "f"), (1, "f"), (1, "s"), (11, "s")]
