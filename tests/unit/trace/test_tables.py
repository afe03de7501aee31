"""Tables: order of equal rows, columns on disk, dictionaries, labels, and what a file says of itself."""

from __future__ import annotations

import dataclasses
import errno
import gc
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.generate import write_trace
from trace_files import counts, document, events, kernel, op, read_text, render
from trace_twin import rows_read

from tracelock.errors import TracelockError
from tracelock.trace import Trace, dictionary, read_trace, release, store
from tracelock.trace.columns import DeviceKind, FlowKind, HostKind
from tracelock.trace.kinds import Table, meaning
from tracelock.trace.tally import KINDS, Tally


def read(folder: Path, *rows: dict[str, Any], **keys: Any) -> Trace:
    """Read a trace of these events."""
    return read_text(folder, json.dumps({"traceEvents": rows} | keys))


def test_equal_rows_stand_outermost_first(tmp_path: Path) -> None:
    same = {"ts": 100, "dur": 50, "pid": 1, "tid": 1}
    rows = [
        op(0, cat="cuda_driver", name="cuLaunchKernel", **same),
        op(0, cat="cuda_runtime", name="cudaLaunchKernel", **same),
        op(7, name="inner", **same),
        op(3, name="outer", **same),
        op(0, cat="user_annotation", name="step", **same),
        op(0, cat="python_function", name="callee", args={"Python id": 9}, **same),
        op(0, cat="python_function", name="caller", args={"Python id": 2}, **same),
        op(0, name="longer", **same | {"dur": 60}),
        op(0, name="earlier", **same | {"ts": 99}),
    ]
    trace = read(tmp_path, *rows)
    order = ["earlier", "longer", "caller", "callee", "step", "outer", "inner", "cudaLaunchKernel", "cuLaunchKernel"]
    assert [trace.texts[i] for i in trace.host.name] == order


@pytest.mark.parametrize("workers", [1, 2])
def test_columns_on_disk_have_the_same_values(tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "CHUNK_ROWS", 1000)
    path = tmp_path / "trace.json"
    write_trace(path, 3)
    whole, spilt = read_trace(path, workers=1), read_trace(path, workers=workers, spill_bytes=200_000)
    assert rows_read(spilt) == rows_read(whole)
    assert spilt.facts == whole.facts
    for table in ("host", "device", "memory", "flows"):
        for field in dataclasses.fields(getattr(whole, table)):
            column = getattr(getattr(spilt, table), field.name)
            assert column.dtype == getattr(getattr(whole, table), field.name).dtype
            assert type(column) is np.ndarray


def test_a_spill_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "spill"))
    monkeypatch.setattr(store, "CHUNK_ROWS", 1000)
    (tmp_path / "spill").mkdir()
    write_trace(tmp_path / "trace.json", 1)
    trace = read_trace(tmp_path / "trace.json", spill_bytes=0)
    assert not list((tmp_path / "spill").iterdir())
    assert store.pages_of(trace.host.duration) is not None
    assert int(trace.host.duration.sum()) > 0


def test_the_collector_is_left_as_it_was(tmp_path: Path) -> None:
    assert gc.isenabled()
    with pytest.raises(Exception, match="is empty"):
        read_text(tmp_path, "")
    assert gc.isenabled()


def test_absent_columns_are_absent(tmp_path: Path) -> None:
    trace = read(tmp_path, op(1), kernel(2, args={}))
    assert trace.host.correlation.tolist() == [-1]
    assert trace.host.stack.tolist() == [-1]
    assert trace.device.stream.tolist() == [-1]
    assert trace.device.device.tolist() == [0]
    assert np.isnan(trace.device.occupancy).all()
    assert trace.device.collective.tolist() == [-1]


def test_both_spellings_of_the_external_id(tmp_path: Path) -> None:
    trace = read(tmp_path, kernel(1, args={"external id": 5}), kernel(2, args={"External id": 6}))
    assert trace.device.external.tolist() == [5, 6]


def test_one_track_for_a_number_and_its_text(tmp_path: Path) -> None:
    label = {"ph": "M", "name": "thread_name", "pid": 1, "tid": "2", "args": {"name": "thread 2 (python)"}}
    process = {"ph": "M", "name": "process_name", "pid": "1", "tid": 0, "args": {"name": "python"}}
    trace = read(tmp_path, op(1, pid=1, tid="2"), op(2, pid="1", tid=2), op(3, pid="Spans", tid=""), label, process)
    assert [(track.pid, track.tid) for track in trace.tracks] == [(1, 2), ("Spans", "")]
    assert trace.tracks[0].thread_name == "thread 2 (python)"
    assert trace.tracks[0].process_name == "python"
    assert trace.tracks[1].thread_name is None


def test_equal_texts_have_one_id_however_they_are_written(tmp_path: Path) -> None:
    rows = [render(op(number), "compact") for number in range(3)]
    rows[1] = rows[1].replace("[[4, 4]]", "[ [4,\n4] ]")
    rows[2] = rows[2].replace("aten::op2", "aten::\\u006fp0")
    trace = read_text(tmp_path, document(rows, "compact"))
    assert len(set(trace.texts)) == len(trace.texts)
    assert {trace.texts[i] for i in trace.host.shapes} == {"[[4,4]]"}
    assert trace.texts[trace.host.name[2]] == "aten::op0"


def test_call_stacks_are_capped_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dictionary.Stacks.__init__, "__defaults__", (1000,))
    rows = [op(number, args={"Call stack": f"{number}:" + "x" * 96}) for number in range(30)]
    trace = read(tmp_path, *rows, *rows)
    kept = trace.host.stack >= 0
    assert kept.sum() == 2 * 10
    assert counts(trace) == {"stacks-capped": 2 * 20}


def test_collectives_are_described_once(tmp_path: Path) -> None:
    args = {
        "device": 0,
        "stream": 9,
        "correlation": 1,
        "Collective name": "allreduce",
        "In msg nelems": 10,
        "grid": [1],
    }
    rows = [kernel(n, args=args | {"correlation": n}) for n in range(3)] + [kernel(5)]
    rows.append(kernel(6, args=args | {"In msg nelems": 20}))
    trace = read(tmp_path, *rows)
    assert trace.device.collective.tolist() == [0, 0, 0, -1, 1]
    assert trace.collectives == [
        {"Collective name": "allreduce", "In msg nelems": 10},
        {"Collective name": "allreduce", "In msg nelems": 20},
    ]


def test_old_ways_of_writing_no_stream(tmp_path: Path) -> None:
    trace = read(tmp_path, *(kernel(n, cat="cuda_sync", args={"stream": s}) for n, s in enumerate((-1, 4294967295, 0))))
    assert trace.device.stream.tolist() == [-1, -1, 0]


def test_what_the_file_says_of_itself(tmp_path: Path) -> None:
    keys = {
        "schemaVersion": 1,
        "pytorch_version": "2.9.0",
        "distributedInfo": {"rank": 3, "world_size": 8},
        "baseTimeNanoseconds": 17,
        "with_stack": 1,
        "record_shapes": 0,
        "deviceProperties": [{"id": 4, "name": "A"}, {"name": "B"}, 7],
    }
    facts = read(tmp_path, op(1), **keys).facts
    assert (facts.schema_version, facts.torch_version, facts.rank, facts.world_size) == (1, "2.9.0", 3, 8)
    assert (facts.base_time_ns, facts.with_stack, facts.record_shapes, facts.profile_memory) == (17, True, False, None)
    assert [(device.id, device.name) for device in facts.devices] == [(4, "A"), (1, "B")]
    assert facts.distributed == {"rank": 3, "world_size": 8}


def test_metadata_of_unexpected_types_are_as_good_as_absent(tmp_path: Path) -> None:
    keys = {"schemaVersion": [1], "distributedInfo": "x", "deviceProperties": {"id": 1}, "with_stack": "yes"}
    facts = read(tmp_path, op(1), **keys).facts
    assert (facts.schema_version, facts.rank, facts.devices, facts.with_stack) == (None, None, (), None)


@pytest.mark.parametrize(
    ("category", "table", "kind"),
    [
        ("cpu_op", Table.HOST, HostKind.OPERATOR),
        ("Operator", Table.HOST, HostKind.OPERATOR),
        ("OPERATOR", Table.HOST, HostKind.OPERATOR),
        ("Runtime", Table.HOST, HostKind.RUNTIME),
        ("gcu_runtime", Table.HOST, HostKind.RUNTIME),
        ("xpu_driver", Table.HOST, HostKind.DRIVER),
        ("Kernel", Table.DEVICE, DeviceKind.KERNEL),
        ("GPU_MEMCPY", Table.DEVICE, DeviceKind.MEMCPY),
        ("GCU_MEMSET", Table.DEVICE, DeviceKind.MEMSET),
        ("xpu_sync", Table.DEVICE, DeviceKind.SYNC),
        ("gpu_user_annotation", Table.DEVICE, DeviceKind.ANNOTATION),
        ("user_annotation", Table.HOST, HostKind.ANNOTATION),
        ("forward_backward", Table.FLOW, FlowKind.FORWARD_BACKWARD),
        ("async", Table.FLOW, FlowKind.LAUNCH),
        ("ipc", Table.HOST, HostKind.OTHER),
    ],
)
def test_one_meaning_for_every_spelling(category: str, table: Table, kind: int) -> None:
    assert meaning(category) == (table, kind)


def test_every_code_has_a_message_that_tells_the_count() -> None:
    for code, kind in KINDS.items():
        tally = Tally()
        tally.add(code, 12345)
        (warning,) = tally.warnings()
        assert (warning.code, warning.count) == (code, 12345)
        assert "{" not in warning.message
        assert (
            tally.quality()
            == {"note": "complete", "mended": "salvaged", "lost": "salvaged", "cut": "partial"}[kind.weight]
        )


def test_begin_and_end_events_and_counters_are_counted(tmp_path: Path) -> None:
    rows = [{"ph": ph, "name": "x", "ts": 1, "pid": 1, "tid": 1} for ph in "BEC"]
    trace = read(tmp_path, op(1), *rows)
    assert counts(trace) == {"begin-end-rows": 1}
    assert trace.facts.unused == {"C": 1, "E": 1}
    assert trace.facts.events == 4
    assert trace.facts.quality == "complete"


def test_reading_twice_gives_the_same(tmp_path: Path) -> None:
    text = document([render(event, "kineto") for event in events(300)], "kineto")
    one, two = read_text(tmp_path, text), read_text(tmp_path, text)
    assert one.facts == two.facts
    assert rows_read(one) == rows_read(two)
    assert list(one.texts) == list(two.texts)


def test_released_columns_keep_their_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "CHUNK_ROWS", 1000)
    write_trace(tmp_path / "trace.json", 1)
    trace = read_trace(tmp_path / "trace.json", spill_bytes=0)
    before = rows_read(trace)
    assert store.pages_of(trace.host.start) is not None
    assert store.pages_of(trace.host.python_id) is None
    release(trace)
    assert rows_read(trace) == before
    release(read_text(tmp_path, json.dumps([op(1)])))


def test_every_code_is_documented_with_its_quality(root: Path) -> None:
    text = (root / "docs" / "reading.md").read_text()
    documented = dict(re.findall(r"^\| ([a-z0-9-]+) \| (partial|salvaged|complete) \|", text, re.MULTILINE))
    qualities = {"note": "complete", "mended": "salvaged", "lost": "salvaged", "cut": "partial"}
    assert documented == {code: qualities[kind.weight] for code, kind in KINDS.items()}


def test_a_full_disk_gets_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    write_trace(tmp_path / "trace.json", 1)
    monkeypatch.setattr(store, "CHUNK_ROWS", 500)
    monkeypatch.setattr(store.os, "pwrite", full)
    with pytest.raises(TracelockError, match=r"No space left on device .*set TMPDIR"):
        read_trace(tmp_path / "trace.json", spill_bytes=0)
