"""Two processes read what one reads, and leave to one what cannot be cut."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from bench.generate import write_trace
from trace_twin import rows_read

from tracelock.trace import parallel, read_trace


@pytest.fixture
def cut_small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files be cut however small they are."""
    monkeypatch.setattr(parallel, "_LOOK", 1 << 16)
    monkeypatch.setattr(parallel, "_HEAD_START", 0)


def plain(shared: Path, name: str, folder: Path, change: Callable[[str], str] = str) -> Path:
    """Return the uncompressed copy of a real trace."""
    path = folder / "trace.json"
    path.write_text(change(gzip.decompress((shared / "traces" / name).read_bytes()).decode()))
    return path


@pytest.mark.usefixtures("cut_small_files")
@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("name", ["hta-nccl.json.gz", "tracelens-h100-qwen.json.gz", "hta-ns-resolution.json.gz"])
def test_several_processes_read_what_one_reads(shared: Path, tmp_path: Path, name: str, workers: int) -> None:
    path = plain(shared, name, tmp_path)
    one, several = read_trace(path, workers=1), read_trace(path, workers=workers)
    assert rows_read(several) == rows_read(one)
    assert several.facts == one.facts
    assert set(several.tracks) == set(one.tracks)


@pytest.mark.usefixtures("cut_small_files")
def test_a_file_that_is_cut_off_is_read_to_its_end_by_several(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    write_trace(path, 3)
    text = path.read_bytes()
    path.write_bytes(text[: len(text) - 70_000])
    one, two = read_trace(path, workers=1), read_trace(path, workers=2)
    assert two.facts == one.facts
    assert two.facts.quality == "partial"
    assert rows_read(two) == rows_read(one)


@pytest.mark.usefixtures("cut_small_files")
def test_a_cut_in_a_nested_list_is_noticed(tmp_path: Path) -> None:
    # All that looks like the space between two events lies in args; the one real one is at the very end.
    inner = [{"ph": "X", "name": "not an event", "ts": 1, "dur": 1, "pid": 1, "tid": 1}] * 4000
    event = {"ph": "X", "cat": "cpu_op", "name": "outer", "ts": 1, "dur": 9, "pid": 1, "tid": 1}
    events = [event, event | {"args": {"list": inner}}, event]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    trace = read_trace(path, workers=2)
    assert len(trace.host) == 3
    assert trace.facts.warnings == ()


def test_small_and_compressed_files_are_read_by_one_process(tmp_path: Path) -> None:
    small = tmp_path / "small.json"
    small.write_text("[]")
    packed = tmp_path / "packed.json"
    packed.write_bytes(gzip.compress(b"[]"))
    assert parallel.workers_for(small, None) == 1
    assert parallel.workers_for(packed, 8) == 1
    assert parallel.workers_for(small, 2) == 2
