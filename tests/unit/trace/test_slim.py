"""A small trace out of a large one: whole, valid, and consistent in itself."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.generate import write_trace
from trace_files import counts, kernel, names, op, read_text
from trace_twin import lane, load, ns

from tracelock.cli._slim import Request, _most_typical, run, steps_of
from tracelock.errors import TracelockError
from tracelock.trace import Trace, read_trace


def slim(source: Path, target: Path, steps: int = 1, first: int | None = None, least_us: float = 0.0) -> Trace:
    """Write a slim trace and return it."""
    run(Request(source, target, steps, first, least_us))
    return read_trace(target)


def arrows_meet_rows(document: dict[str, Any]) -> None:
    """Assert that each arrow has a beginning and an end, each at the start of a row on its lane."""
    rows = {(lane(event), ns(event["ts"])) for event in document["traceEvents"] if event["ph"] == "X"}
    ends: dict[tuple[str, int], Counter[str]] = {}
    for event in document["traceEvents"]:
        if event["ph"] in "stf":
            ends.setdefault((event["cat"], event["id"]), Counter())[event["ph"]] += 1
            assert (lane(event), ns(event["ts"])) in rows or event["cat"] == "ac2g"
    assert ends
    for phases in ends.values():
        assert phases["s"] >= 1
        assert phases["f"] >= 1


@pytest.mark.parametrize("name", ["hta-nccl.json.gz", "hta-ns-resolution.json.gz", "kineto-resnet50-workers0.json.gz"])
@pytest.mark.parametrize("least", [0.0, 5.0])
def test_a_step_of_a_real_trace(shared: Path, tmp_path: Path, name: str, least: float) -> None:
    source = shared / "traces" / name
    whole, small = read_trace(source), slim(source, tmp_path / "small.json", least_us=least)
    (step,) = steps_of(small).number
    steps = steps_of(whole)
    place = steps.number.tolist().index(step)
    start, end = steps.start[place], steps.end[place]
    assert small.facts.quality == "complete"
    assert small.facts.devices == whole.facts.devices
    assert small.facts.distributed == whole.facts.distributed
    assert {(t.pid, t.tid, t.thread_name) for t in small.tracks} <= {
        (t.pid, t.tid, t.thread_name) for t in whole.tracks
    }
    assert ((small.host.start >= start) & (small.host.start < end)).all()
    within = (whole.host.start >= start) & (whole.host.start < end)
    launched = np.isin(whole.device.correlation, whole.host.correlation[within & (whole.host.correlation > 0)])
    kept = launched & (whole.device.duration >= least * 1000) & (whole.device.kind != 4)
    assert sorted(small.device.correlation[small.device.kind != 4]) == sorted(whole.device.correlation[kept])
    if not least:
        assert len(small.host) == within.sum()
    else:
        short = small.host.duration < least * 1000
        launches = np.isin(small.host.correlation, small.device.correlation)
        assert (launches | (small.host.kind == 3))[short].all()
    arrows_meet_rows(load(tmp_path / "small.json"))


def test_steps_by_number_and_size_of_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_trace(tmp_path / "large.json", 8)
    trace = slim(tmp_path / "large.json", tmp_path / "small.json.gz", steps=3, first=5)
    assert steps_of(trace).number.tolist() == [5, 6, 7]
    assert (tmp_path / "small.json.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert "ProfilerStep#5, ProfilerStep#6, ProfilerStep#7" in capsys.readouterr().err
    assert trace.facts.base_time_ns == 1_751_410_836_000_000_000
    assert not trace.facts.warnings
    assert len(trace.memory) == 180


def test_the_most_typical_steps_are_chosen() -> None:
    assert _most_typical(np.array([900, 100, 101, 99, 500]), 2) == 1
    assert _most_typical(np.array([900, 100, 101, 99, 500]), 1) in (1, 2)
    assert _most_typical(np.array([5, 6]), 9) == 0


@pytest.mark.parametrize("category", ["user_annotation", "cpu_op", "Operator"])
def test_steps_of_every_year_are_found(tmp_path: Path, category: str) -> None:
    rows = [op(0, name="ProfilerStep#3", cat=category, ts=1000, dur=100), op(1, ts=1010), op(2, ts=2000)]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(rows))
    assert steps_of(slim(path, tmp_path / "small.json")).number.tolist() == [3]


def test_work_launched_in_a_step_is_kept_when_it_ends_later(tmp_path: Path) -> None:
    step = {"cat": "user_annotation", "pid": 1, "tid": 1}
    launch = op(0, cat="cuda_runtime", name="cudaLaunchKernel", args={"correlation": 7}, ts=1090, dur=2)
    rows = [
        op(0, name="ProfilerStep#3", ts=1000, dur=100, **step),
        launch,
        kernel(7, ts=1500, dur=10),
        kernel(8, ts=1050, dur=10, name="of no launch"),
        kernel(9, ts=900, dur=400, name="before"),
        op(1, ts=1100, name="after"),
        op(2, ts=900, dur=500, name="around"),
        {"ph": "s", "cat": "ac2g", "id": "7", "ts": 1090, "pid": 100, "tid": 100},
        {"ph": "f", "cat": "ac2g", "id": 7, "ts": 1500, "pid": 0, "tid": 7},
        {"ph": "s", "cat": "ac2g", "id": 99, "ts": 1090, "pid": 100, "tid": 100},
        {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "ts": 1, "dur": 9999, "pid": "Spans", "tid": "x"},
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(rows))
    trace = slim(path, tmp_path / "small.json", least_us=5)
    assert names(trace) == {"ProfilerStep#3", "cudaLaunchKernel", "kernel7", "of no launch"}
    assert trace.flows.identifier.tolist() == [7, 7]


def test_digits_and_texts_are_copied_as_they_stand(tmp_path: Path) -> None:
    times = '"ts": 1712195495519689.047, "dur": 1.250'
    raw = f'{{"ph": "X", "cat": "cpu_op", "name": "a\\u00e9\\"b", {times}, "pid": 1, "tid": 1}}'
    step = raw.replace("cpu_op", "user_annotation").replace('a\\u00e9\\"b', "ProfilerStep#1").replace("1.250", "9.000")
    path = tmp_path / "trace.json"
    path.write_text(f"[{step}, {raw}]")
    trace = slim(path, tmp_path / "small.json")
    assert raw in (tmp_path / "small.json").read_text()
    assert trace.host.start.tolist() == [1712195495519689047] * 2


def test_a_damaged_trace_gives_a_sound_one(tmp_path: Path) -> None:
    rows = [op(0, name="ProfilerStep#1", cat="user_annotation", ts=1000, dur=500), op(1), kernel(2), op(3)]
    text = json.dumps({"schemaVersion": 1, "traceEvents": rows}).replace("aten::op1", "C:\\Users")[:-30]
    (tmp_path / "trace.json").write_text(text)
    trace = slim(tmp_path / "trace.json", tmp_path / "small.json")
    assert names(trace) == {"ProfilerStep#1", "C:\\Users", "kernel2"}
    assert counts(trace) == {}
    json.loads((tmp_path / "small.json").read_text())


def test_what_cannot_be_done_gets_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    read_text(tmp_path, json.dumps([op(1)]))
    with pytest.raises(TracelockError, match="has no steps"):
        slim(path, tmp_path / "small.json")
    with pytest.raises(TracelockError, match="is the trace itself"):
        slim(path, path)
    steps = [op(n, name=f"ProfilerStep#{n}", cat="user_annotation") for n in (10, 11, 12)]
    read_text(tmp_path, json.dumps(steps))
    with pytest.raises(TracelockError, match=r"has no ProfilerStep#1: it has 10 to 12 \(did you mean '1\d'\?\)"):
        slim(path, tmp_path / "small.json", first=1)
    assert not (tmp_path / "small.json").exists()


def test_a_compressed_trace_is_read_and_written(tmp_path: Path) -> None:
    write_trace(tmp_path / "large.json", 2)
    (tmp_path / "large.json.gz").write_bytes(gzip.compress((tmp_path / "large.json").read_bytes()))
    one = slim(tmp_path / "large.json", tmp_path / "one.json")
    two = slim(tmp_path / "large.json.gz", tmp_path / "two.json")
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    assert len(one.host) == len(two.host) > 100
