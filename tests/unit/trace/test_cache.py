"""Columns that are kept: the same trace comes back, bit for bit, or none at all."""

from __future__ import annotations

import os
import time
import zipfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.bench.generate import write_trace

from tracelock.cli import main
from tracelock.trace import Trace, cache, kept, open_trace, read_trace

TABLES = ("host", "device", "memory", "flows")
DAMAGED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trace of 1 MB, a cache that keeps it, and a folder of its own for that."""
    monkeypatch.setenv("TRACELOCK_CACHE", str(tmp_path / "kept"))
    monkeypatch.setattr(cache, "LEAST_JSON", 0)
    write_trace(tmp_path / "trace.json", 0.3)
    return tmp_path / "trace.json"


def _files(source: Path) -> list[Path]:
    return sorted((source.parent / "kept" / "columns").glob("*"))


def _assert_same(one: Trace, other: Trace) -> None:
    for table in TABLES:
        for field in fields(getattr(one, table)):
            mine, its = (getattr(getattr(each, table), field.name) for each in (one, other))
            assert mine.dtype == its.dtype
            np.testing.assert_array_equal(mine, its, err_msg=f"{table}.{field.name}")
    assert list(one.texts) == list(other.texts)
    assert list(one.tracks) == list(other.tracks)
    assert list(one.collectives) == list(other.collectives)
    assert one.facts == other.facts
    assert one.path == other.path


def test_a_second_look_gives_the_same_trace_without_reading_it(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = open_trace(source, keep=True)
    monkeypatch.setattr(cache, "read_trace", None)
    _assert_same(open_trace(source, keep=True), first)


def test_real_traces_come_back_the_same(shared: Path, tmp_path: Path) -> None:
    for name in ("dlrm-rank0", "tracelens-h100-bert", "hta-cpu-only", "tracelens-vllm-hipgraph", "perfetto-flow-v1"):
        trace = read_trace(shared / "traces" / f"{name}.json.gz")
        kept.write(trace, tmp_path / "one.npz", "key")
        back = kept.read(tmp_path / "one.npz", "key")
        assert back is not None
        assert back.facts == trace.facts
        _assert_same(Trace(**{**vars(back), "path": trace.path}), trace)


def test_a_column_is_read_by_numpy_itself(source: Path) -> None:
    trace = open_trace(source, keep=True)
    (file,) = _files(source)
    with np.load(file, allow_pickle=False) as columns:
        np.testing.assert_array_equal(columns["host.start"], trace.host.start)


@DAMAGED
@given(place=st.floats(0, 1, exclude_max=True), what=st.sampled_from(["flip", "cut", "zeros"]))
def test_a_damaged_file_is_never_used(source: Path, place: float, what: str) -> None:
    plain = open_trace(source, keep=False)
    good = source.parent / "good.npz"
    if not good.is_file():
        kept.write(plain, good, "key")
    data = bytearray(good.read_bytes())
    at = int(place * len(data))
    if what == "cut":
        del data[at:]
    else:
        data[at : at + 64] = bytes(64) if what == "zeros" else bytes(255 - byte for byte in data[at : at + 64])
    bad = source.parent / "bad.npz"
    bad.write_bytes(data)
    found = kept.read(bad, "key")
    if found is not None:  # what was hit says nothing: padding, a date
        _assert_same(Trace(**{**vars(found), "path": plain.path}), plain)


def test_a_damaged_file_is_made_anew(source: Path) -> None:
    first = open_trace(source, keep=True)
    (file,) = _files(source)
    file.write_bytes(b"PK" + bytes(1000))
    _assert_same(open_trace(source, keep=True), first)
    assert zipfile.is_zipfile(file)


def test_a_changed_file_and_another_reader_are_read_again(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = open_trace(source, keep=True)
    write_trace(source, 3)
    assert open_trace(source, keep=True).facts.events > first.facts.events
    monkeypatch.setattr(cache, "_code", lambda: "another")
    open_trace(source, keep=True)
    assert len(_files(source)) == 3


def test_the_folder_is_bounded_and_what_a_killed_writer_left_goes(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_trace(source, keep=True)
    (old,) = _files(source)
    os.utime(old, (1, 1))
    left, writing = old.with_name(".left.npz"), old.with_name(".writing.npz")
    for file, age in ((left, 7200), (writing, 0)):
        file.write_bytes(b"x")
        os.utime(file, (time.time() - age,) * 2)
    monkeypatch.setenv("TRACELOCK_CACHE_BYTES", str(int(1.5 * old.stat().st_size)))
    os.utime(source, (5, 5))
    open_trace(source, keep=True)
    assert not old.exists()
    assert not left.exists()
    assert writing.exists()
    assert len(_files(source)) == 2


def test_nothing_is_kept_of_a_file_that_grew_meanwhile(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def growing(path: Path, progress: Any) -> Trace:
        trace = read_trace(path, progress)
        with path.open("ab") as stream:
            stream.write(b" ")
        return trace

    monkeypatch.setattr(cache, "read_trace", growing)
    open_trace(source, keep=True)
    assert _files(source) == []


@pytest.mark.parametrize("folder", ["", "file/below"])
def test_without_a_place_to_keep_it_a_trace_is_read_all_the_same(
    folder: str, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source.parent / "file").write_text("in the way")
    monkeypatch.setenv("TRACELOCK_CACHE", folder and str(source.parent / folder))
    assert open_trace(source, keep=True).facts.events > 0


def test_without_a_home_there_is_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TRACELOCK_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.delenv(name, raising=False)
    assert cache.folder_of() is None
    monkeypatch.setenv("HOME", os.sep + "home")
    assert cache.folder_of() == Path(os.sep, "home", ".cache", "tracelock", "columns")


@pytest.mark.parametrize("option", ["--cache", "--no-cache"])
def test_analyze_says_the_same_of_kept_columns(option: str, source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = []
    for _ in range(2):
        with pytest.raises(SystemExit):
            main(["analyze", "--json", option, str(source)])
        told.append(capsys.readouterr())
    assert told[0] == told[1]
    assert len(_files(source)) == (option == "--cache")
