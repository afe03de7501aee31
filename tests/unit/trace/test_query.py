"""SQL over a trace: right values, the documented schema, and no way out of the trace."""

from __future__ import annotations

import builtins
import csv
import io
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from trace_files import events, kernel, op
from trace_twin import load

pytest.importorskip("duckdb")

from tracelock.cli import _query
from tracelock.errors import TracelockError
from tracelock.trace import read_trace


def write(folder: Path, *rows: dict[str, Any]) -> Path:
    """Write a trace of these events and return its path."""
    path = folder / "trace.json"
    path.write_text(json.dumps({"traceEvents": rows}))
    return path


def ask(path: Path, sql: str) -> list[Any]:
    """Return the rows that a query gives."""
    return _query.connect(read_trace(path)).execute(sql).fetchall()  # type: ignore[no-any-return]


def test_sums_by_name_are_those_of_the_file(shared: Path) -> None:
    path = shared / "traces" / "hta-nccl.json.gz"
    expected: Counter[str] = Counter()
    for event in load(path)["traceEvents"]:
        if event.get("cat") == "kernel":
            expected[event["name"]] += round(event["dur"] * 1000)
    found = ask(path, "select name, sum(dur_ns), sum(dur) from device where kind = 'kernel' group by name")
    assert {name: int(total) for name, total, _ in found} == expected
    assert all(abs(us * 1000 - ns) < 1e-3 * ns for _, ns, us in found)


def test_columns_have_names_values_and_nulls(tmp_path: Path) -> None:
    memory = {"ph": "i", "name": "[memory]", "ts": 1500.5, "pid": 1, "tid": 2}
    memory["args"] = {"Bytes": -8, "Device Type": 1, "Device Id": 0, "Addr": 2**63 + 5}  # type: ignore[assignment]
    flow = {"ph": "s", "cat": "ac2g", "id": 7, "ts": 1600, "pid": "Spans", "tid": ""}
    label = {"ph": "M", "name": "thread_name", "pid": 100, "tid": 100, "args": {"name": "main"}}
    path = write(tmp_path, op(1), kernel(2), memory, flow, label)
    host = ask(path, "select name, kind, ts, dur, ts_ns, pid, thread_name, correlation, shapes, stack from host")
    assert host == [("aten::op1", "operator", 0.0, 5.0, 1_010_000, "100", "main", None, "[[4,4]]", None)]
    device = ask(
        path, "select ts, device, stream, correlation, bytes, blocks_per_sm, occupancy, collective from device"
    )
    assert device == [(13.0, 0, 7, 2, None, 1.5, None, None)]
    assert ask(path, "select ts, device_type, device, address, bytes, allocated from memory") == [
        (490.5, "CUDA", 0, 2**63 + 5, -8, None)
    ]
    assert ask(path, "select ts, pid, tid, id, kind, begins from flows") == [(590.0, "Spans", "", 7, "launch", True)]


def test_the_documented_schema_is_the_schema(root: Path, tmp_path: Path) -> None:
    text = (root / "docs" / "query.md").read_text()
    connection = _query.connect(read_trace(write(tmp_path, *events(4))))
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:5]:
        table = section.partition(":")[0]
        documented = [
            name for row in re.findall(r"^\| ([a-z_, ]+) \|", section, re.MULTILINE) for name in row.split(", ")
        ]
        actual = [row[0] for row in connection.execute(f"describe {table}").fetchall()]
        assert sorted(documented[1:]) == sorted(actual), table


def test_the_documented_examples_run(root: Path, shared: Path) -> None:
    connection = _query.connect(read_trace(shared / "traces" / "tracelens-h100-qwen.json.gz"))
    examples = re.findall(r"```sql\n(.*?)```", (root / "docs" / "query.md").read_text(), re.DOTALL)
    assert len(examples) == 3
    for sql in examples:
        assert connection.execute(sql).fetchall()


@pytest.mark.parametrize(
    "sql",
    [
        "select * from '{path}'",
        "select * from read_csv('{path}')",
        "select * from read_text('{path}')",
        "select * from glob('{folder}/*')",
        "copy (select 1) to '{folder}/out.csv'",
        "attach '{folder}/other.db'",
        "export database '{folder}/out'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "set lock_configuration = false",
        "select * from path",
    ],
)
def test_a_query_reaches_nothing_but_the_trace(tmp_path: Path, sql: str) -> None:
    import duckdb

    path = write(tmp_path, *events(4))
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\n1,2\n")
    before = set(tmp_path.iterdir())
    with pytest.raises(duckdb.Error):
        ask(path, sql.format(path=secret, folder=tmp_path))
    assert set(tmp_path.iterdir()) == before


def test_a_wrong_query_gets_one_line_with_the_nearest_name(tmp_path: Path) -> None:
    path = write(tmp_path, *events(4))
    with pytest.raises(TracelockError, match=r'SQL: Catalog Error: Table with name hosts .*\(Did you mean "host"'):
        _query.run(path, "select 1 from hosts", "table", 10)
    with pytest.raises(TracelockError, match="nme"):
        _query.run(path, "select nme from host", "table", 10)


def test_rows_as_csv_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, op(1, name='a,"b"'), op(3))
    _query.run(path, "select name, dur, stack from host order by ts", "csv", 1)
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert rows == [["name", "dur", "stack"], ['a,"b"', "5.0", ""], ["aten::op3", "5.0", ""]]
    _query.run(path, "select name, stack from host order by ts", "json", 1)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [{"name": 'a,"b"', "stack": None}, {"name": "aten::op3", "stack": None}]


def test_a_printed_table_tells_that_there_are_more_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, *events(8))
    _query.run(path, "select name, dur from host order by ts", "table", 2)
    out, err = capsys.readouterr()
    assert [line.split() for line in out.splitlines()] == [
        ["name", "dur"],
        ["aten::op1", "5.000"],
        ["aten::op3", "5.000"],
    ]
    assert "first 2 rows" in err
    _query.run(path, "select * from device limit 1", "table", 2)
    out, err = capsys.readouterr()
    assert "blocks_per_sm  1.500" in out
    assert "collective" not in out
    assert err == ""


def test_without_duckdb_the_way_to_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "duckdb":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(TracelockError, match="pip install duckdb"):
        _query.run(tmp_path / "never read", "select 1", "table", 1)
