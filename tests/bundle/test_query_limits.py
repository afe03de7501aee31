"""SQL of strangers: it sees the trace, and cannot read, write, attach, install, change settings or run for ever."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tracelock.cli import _query
from tracelock.errors import TracelockError

duckdb = pytest.importorskip("duckdb")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    rows = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": n, "dur": 1, "pid": 1, "tid": 1} for n in range(50)]
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"schemaVersion": 1, "traceEvents": rows}).encode()))
    return path


@pytest.mark.parametrize(
    "sql",
    [
        "select * from read_text('{secret}')",
        "select * from read_csv('{secret}')",
        "select * from read_blob('/etc/passwd')",
        "select * from '{secret}'",
        "select * from glob('/*')",
        "copy (select 1) to '{target}'",
        "export database '{target}'",
        "attach '{target}' as x",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "set memory_limit = '100GB'",
        "set temp_directory = '{target}'",
        "set lock_configuration = false",
        "pragma enable_external_access = true",
        "select getenv('HOME')",
        "import database '{target}'",
    ],
)
def test_nothing_but_the_trace_is_reached(sql: str, trace: Path, tmp_path: Path, capsys) -> None:
    secret, target = tmp_path / "secret.csv", tmp_path / "written"
    secret.write_text("hidden\n")
    with pytest.raises(TracelockError):
        _query.run(trace, sql.format(secret=secret, target=target), "csv", 10)
    assert "hidden" not in capsys.readouterr().out
    assert not target.exists()


def test_a_query_that_runs_away_is_ended(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_query, "_SECONDS", 1.0)
    with pytest.raises(TracelockError, match="took longer than 1 s and was ended"):
        _query.run(trace, "select sum(a.range * b.range) from range(10000000) a, range(10000000) b", "csv", 10)


def test_a_query_that_wants_all_memory_is_ended(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_query, "_MEMORY", "64MB")
    with pytest.raises(TracelockError, match=r"Out of Memory|could not allocate"):
        _query.run(trace, "select list(range) from range(100000000)", "csv", 10)
