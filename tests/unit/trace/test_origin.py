"""Files of other tools, of older profilers, and rows in two halves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trace_files import counts, events, kernel, op, read_text

from tracelock.trace import Trace, read_trace, walk
from tracelock.trace.columns import DeviceKind, HostKind


def read(folder: Path, rows: Sequence[Any], **keys: Any) -> Trace:
    return read_text(folder, json.dumps({"traceEvents": rows} | keys, indent=1))


def named(pid: int, name: str, what: str = "process_name", tid: int = 0) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def x(name: str, ts: float | str, dur: float, pid: Any = 1, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": 1} | more


ASCEND = [
    named(1, "Python"),
    named(4, "Ascend Hardware"),
    named(5, "CANN"),
    x("ProfilerStep#3", "1695204034000.123", 900, cat="cpu_op", args={}),
    x("aten::mm", "1695204034010.123", 20, cat="cpu_op", args={}),
    x("MatMulV2", "1695204034100.523", 700, pid=4, args={"Task Type": "AI_CORE", "Task Id": 7}),
]
JAX = [
    named(1, "/device:GPU:0"),
    named(1, "XLA Ops", "thread_name", 2),
    named(701, "/host:CPU"),
    x("fusion.3", 1.5, 20, tid=2, args={"hlo_op": "fusion.3", "hlo_module": "jit_f"}),
    x("PjitFunction(f)", 0.5, 90, pid=701, args={}),
]
CHROME = [
    named(1, "Browser"),
    named(1, "CrBrowserMain", "thread_name", 1),
    x("ThreadControllerImpl::RunTask", 5, 2, cat="toplevel"),
]
NOBODY = [x("compile", 5, 2, cat="build"), x("link", 9, 2, cat="build")]


@pytest.mark.parametrize(
    ("rows", "code"),
    [(ASCEND, "ascend-file"), (JAX, "tensorflow-file"), (CHROME, "chrome-file"), (NOBODY, "unknown-origin")],
)
def test_files_of_other_tools_are_named(tmp_path: Path, rows: list[Any], code: str) -> None:
    assert code in counts(read(tmp_path, rows))


def test_names_that_users_give_do_not_make_a_foreign_file(tmp_path: Path) -> None:
    labels = [named(100, "Browser"), named(100, "Steps", "thread_name", 100), named(100, "/device:GPU:0")]
    assert counts(read(tmp_path, [*labels, *events(20)])) == {}


def test_the_autograd_profiler_before_kineto(tmp_path: Path) -> None:
    rows = [
        x("aten::mm", 10, 5, pid="CPU functions", tid=1, args={}),
        {"ph": "s", "cat": "cpu_to_cuda", "name": "aten::mm", "id": 1, "ts": 10, "pid": "CPU functions", "tid": 1},
        {"ph": "f", "cat": "cpu_to_cuda", "name": "aten::mm", "id": 1, "ts": 14, "pid": "CUDA functions", "tid": 3},
        x("aten::mm", 14, 30, pid="CUDA functions", tid=3, args={}),
    ]
    trace = read_text(tmp_path, json.dumps(rows))
    assert counts(trace) == {"autograd-profiler": 2}
    assert trace.host.kind.tolist() == [HostKind.OPERATOR]
    assert (trace.device.kind.tolist(), trace.device.device.tolist()) == ([DeviceKind.KERNEL], [3])
    assert trace.device.duration.tolist() == [30_000]


def halves(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return complete events as begin and end events, in order of time, inner ends first; ends bear no name."""
    made = []
    for row in rows:
        begin = {key: value for key, value in row.items() if key != "dur"} | {"ph": "B"}
        end = {"ph": "E", "pid": row["pid"], "tid": row["tid"], "ts": row["ts"] + row["dur"]}
        made += [((row["ts"], 1, -row["dur"]), begin), ((end["ts"], 0, row["dur"]), end)]
    return [event for _, event in sorted(made, key=lambda pair: pair[0])]


NESTED = [op(n) | {"args": {"External id": n}} for n in range(40)]
NESTED += [op(100 + n) | {"ts": 1001.25 + 10 * n, "dur": 2.5, "args": {"External id": 200 + n}} for n in range(40)]
NESTED += [kernel(n) for n in range(40)]


@pytest.mark.parametrize("base", [0, 1_700_000_000_000_000.125])
@pytest.mark.parametrize("unit", [600, 5000, 1 << 19])
def test_rows_in_two_halves_are_those_in_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit: int, base: float
) -> None:
    """Whether the halves lie in one unit of the file or in two, and whatever digits the times need."""
    monkeypatch.setattr(walk, "UNIT", unit)
    rows = [row | {"ts": row["ts"] + base} for row in NESTED]
    whole, split = read(tmp_path, rows), read(tmp_path, halves(rows))
    assert counts(split) == {"begin-end-rows": len(rows)}
    for one, two in ((whole.host, split.host), (whole.device, split.device)):
        for column in ("start", "duration", "kind", "correlation", "external"):
            left, right = getattr(one, column), getattr(two, column)
            assert np.abs(left - right).max() <= (250 if base and column in ("start", "duration") else 0), column
    assert [whole.texts[n] for n in whole.host.name] == [split.texts[n] for n in split.host.name]


def test_halves_without_their_other_half_are_counted(tmp_path: Path) -> None:
    lane = {"pid": 1, "tid": 1, "cat": "cpu_op"}
    rows = [
        {"ph": "E", "ts": 1} | lane,
        {"ph": "B", "ts": 2, "name": "lost"} | lane,
        {"ph": "B", "ts": 3, "name": "kept"} | lane,
        {"ph": "E", "ts": 5} | lane,
    ]
    trace = read(tmp_path, [*rows, *events(6)])
    assert counts(trace) == {"begin-end-rows": 1, "unpaired-begin-end": 2}
    assert trace.facts.quality == "salvaged"
    assert "kept" in trace.texts
    assert len(trace.host) == 4


def test_halves_in_a_file_that_is_read_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "big.json"
    path.write_text(json.dumps({"traceEvents": halves(NESTED * 1) * 4}, indent=1))
    one, two = read_trace(path, workers=1), read_trace(path, workers=2)
    assert one.facts.warnings == two.facts.warnings
    assert one.host.start.tolist() == two.host.start.tolist()


@pytest.mark.parametrize("base", [0, 1_700_000_000_000_000])
def test_a_kernel_without_time_and_duration_is_named(tmp_path: Path, base: int) -> None:
    rows = [row | {"ts": row["ts"] + base} for row in events(20)]
    trace = read(tmp_path, [*rows, kernel(50, ts=0, dur=0)])
    assert counts(trace) == {"zero-timestamp": 1}
    assert len(trace.device) == 10
