"""``tracelock columns``: Parquet that holds what a query sees."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bench.generate import write_trace

from tracelock.cli import main
from tracelock.cli._query import connect
from tracelock.trace import read_trace

duckdb = pytest.importorskip("duckdb")


def test_each_table_is_a_file_with_the_rows_of_the_query(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, folder = tmp_path / "trace.json", tmp_path / "it's here"
    write_trace(source, 0.5)
    with pytest.raises(SystemExit) as ended:
        main(["columns", str(source), "-o", str(folder)])
    assert not ended.value.code
    assert sorted(file.name for file in folder.iterdir()) == [
        f"{name}.parquet" for name in ("device", "flows", "host", "memory")
    ]
    told = capsys.readouterr().out
    queried = connect(read_trace(source))
    for name in ("host", "device", "memory", "flows"):
        written = duckdb.read_parquet(str(folder / f"{name}.parquet"))
        expected = queried.execute(f"from {name}").fetchall()
        assert str(written.fetchall()) == str(expected)
        assert f"{name}.parquet: {len(expected):,} rows" in told


def test_without_an_output_nothing_is_written(tmp_path: Path) -> None:
    write_trace(tmp_path / "trace.json", 0.1)
    with pytest.raises(SystemExit) as ended:
        main(["columns", str(tmp_path / "trace.json")])
    assert ended.value.code == 2
