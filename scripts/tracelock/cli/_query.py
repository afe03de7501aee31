"""The work of ``tracelock query``: a trace as tables of DuckDB, and rows as text. The schema: docs/query.md."""

from __future__ import annotations

import contextlib
import csv
import json
import re
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from tracelock.cli._progress import reading
from tracelock.errors import Problem, TracelockError
from tracelock.trace import Trace, open_trace
from tracelock.trace.columns import DeviceKind, FlowKind, HostKind

_BATCH: Final = 10_000
# A query that joins everything with everything ends, whoever wrote it.
_MEMORY: Final = "4GB"
_SECONDS: Final = 600.0
_NAME_WIDTH: Final = 40  # a text may be folded to this
_NUMBER: Final = re.compile(r"(?:-?[\d,]+(?:\.\d+)?)?")
# Names of c10::DeviceType by number, of which the profiler's memory records speak.
_DEVICE_TYPES: Final = ("CPU", "CUDA", "MKLDNN", "OPENGL", "OPENCL", "IDEEP", "HIP", "FPGA", "MAIA", "XLA", "Vulkan")
_MORE_TYPES: Final = ("Metal", "XPU", "MPS", "Meta", "HPU", "VE", "Lazy", "IPU", "MTIA", "PrivateUse1")

# us(ns): microseconds since the first event, so that a double holds them to the nanosecond.
_MACRO: Final = "create macro us(ns) as (ns - (select origin from _origin)) / 1000.0"
VIEWS: Final = {
    "host": """
        select n.text as name, k.text as kind, us(r.start) as ts, r.duration / 1000.0 as dur, r.start as ts_ns,
            r.duration as dur_ns, t.* exclude (id), nullif(r.correlation, -1) as correlation,
            nullif(r.external, -1) as external_id, nullif(r.sequence, -1) as sequence,
            nullif(r.forward_thread, -1) as forward_thread, s.text as shapes, y.text as types, c.text as stack,
            nullif(r.python_id, -1) as python_id, nullif(r.python_parent, -1) as python_parent
        from _host r left join _texts n on n.id = r.name left join _host_kinds k on k.id = r.kind
            left join _tracks t on t.id = r.track left join _texts s on s.id = r.shapes
            left join _texts y on y.id = r.types left join _texts c on c.id = r.stack""",
    "device": """
        select n.text as name, k.text as kind, us(r.start) as ts, r.duration / 1000.0 as dur, r.start as ts_ns,
            r.duration as dur_ns, nullif(r.device, -1) as device, nullif(r.stream, -1) as stream, t.* exclude (id),
            nullif(r.correlation, -1) as correlation, nullif(r.external, -1) as external_id,
            nullif(r.bytes, -1) as bytes, if(isnan(r.blocks_per_sm), null, r.blocks_per_sm) as blocks_per_sm,
            if(isnan(r.occupancy), null, r.occupancy) as occupancy, nullif(r.graph, -1) as graph_id,
            g.text as collective
        from _device r left join _texts n on n.id = r.name left join _device_kinds k on k.id = r.kind
            left join _tracks t on t.id = r.track left join _collectives g on g.id = r.collective""",
    "memory": """
        select us(r.time) as ts, r.time as ts_ns, t.* exclude (id), d.text as device_type,
            nullif(r.device, -1) as device, nullif(r.address, 0) as address, r.bytes,
            nullif(r.allocated, -1) as allocated, nullif(r.reserved, -1) as reserved
        from _memory r left join _device_types d on d.id = r.device_type left join _tracks t on t.id = r.track""",
    "flows": """
        select us(r.time) as ts, r.time as ts_ns, t.* exclude (id), r.identifier as id, k.text as kind, r.begins
        from _flows r left join _flow_kinds k on k.id = r.kind left join _tracks t on t.id = r.track""",
}


def run(file: Path, sql: str, form: str, limit: int, *, cache: bool = False) -> None:
    """Print the rows that `sql` gives over the trace in `file`."""
    duckdb = load_duckdb()
    with reading(file.name) as progress:
        trace = open_trace(file, progress, keep=cache)
    connection = connect(trace)
    try:
        with time_limit(connection):
            result = connection.execute(sql)
            names = [column[0] for column in result.description or ()]
            {"table": _print_table, "csv": _print_csv, "json": _print_json}[form](names, _rows(result), limit)
    except duckdb.InterruptException:
        hint = "ask for less, or for fewer rows of each table"
        raise TracelockError(Problem("SQL", f"took longer than {_SECONDS:.0f} s and was ended", hint)) from None
    except duckdb.Error as error:
        lines = str(error).strip().splitlines()
        hint = next((line.strip() for line in lines[1:] if "Did you mean" in line or "Candidate" in line), "")
        raise TracelockError(
            Problem("SQL", lines[0], hint or f"tables: {', '.join(VIEWS)}; see docs/query.md")
        ) from None


@contextlib.contextmanager
def time_limit(connection: Any) -> Iterator[None]:
    """End what `connection` does after a while; what it does then raises InterruptException."""
    timer = threading.Timer(_SECONDS, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def load_duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise TracelockError(
            Problem("query", "needs DuckDB, which is not installed", "pip install duckdb, or tracelock[query]")
        ) from None
    return duckdb


def connect(trace: Trace) -> Any:
    """Return a DuckDB connection whose tables are those of `trace`, and which can reach nothing else.

    No file can be read or written through it, no extension loaded, no variable of this program seen.
    """
    connection = load_duckdb().connect(
        config={
            "enable_external_access": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "python_enable_replacements": "false",
            "memory_limit": _MEMORY,
            "temp_directory": "",
        }
    )
    add_tables(connection, trace)
    connection.execute("set lock_configuration = true")
    return connection


def add_tables(connection: Any, trace: Trace) -> None:
    """Make the tables of `trace` known to a connection of DuckDB."""
    for name, columns in _tables(trace).items():
        connection.register(name, columns)
    connection.execute(_MACRO)
    for name, view in VIEWS.items():
        connection.execute(f"create view {name} as {view}")


def _tables(trace: Trace) -> dict[str, dict[str, Any]]:
    """Return columns by table: those of the trace, and its dictionaries."""
    tables: dict[str, dict[str, Any]] = {}
    for name, rows in (
        ("host", trace.host),
        ("device", trace.device),
        ("memory", trace.memory),
        ("flows", trace.flows),
    ):
        tables[f"_{name}"] = {column: np.ascontiguousarray(getattr(rows, column)) for column in rows.__annotations__}
    lanes = trace.tracks
    tables["_tracks"] = _texts([str(lane.pid) for lane in lanes], "pid") | {
        "tid": _objects([str(lane.tid) for lane in lanes]),
        "thread_name": _objects([lane.thread_name for lane in lanes]),
        "process_name": _objects([lane.process_name for lane in lanes]),
    }
    tables["_texts"] = _texts(trace.texts)
    tables["_collectives"] = _texts([json.dumps(dict(args), sort_keys=True) for args in trace.collectives])
    tables["_host_kinds"] = _texts([kind.name.lower() for kind in HostKind])
    tables["_device_kinds"] = _texts([kind.name.lower() for kind in DeviceKind])
    tables["_flow_kinds"] = _texts([kind.name.lower() for kind in FlowKind])
    tables["_device_types"] = _texts([*_DEVICE_TYPES, *_MORE_TYPES])
    firsts = [
        rows[0] for rows in (trace.host.start, trace.device.start, trace.memory.time, trace.flows.time) if len(rows)
    ]
    tables["_origin"] = {"origin": np.array([min(firsts, default=0)], dtype=np.int64)}
    return tables


def _objects(values: Iterable[str | None]) -> Any:
    return np.array([*values, None], dtype=object)[:-1]


def _texts(values: Iterable[str], name: str = "text") -> dict[str, Any]:
    column = _objects(values)
    return {"id": np.arange(len(column), dtype=np.int32), name: column}


def _rows(result: Any) -> Iterator[tuple[Any, ...]]:
    while batch := result.fetchmany(_BATCH):
        yield from batch


def _print_table(names: list[str], rows: Iterator[tuple[Any, ...]], limit: int) -> None:
    from rich.console import Console

    shown = [tuple(map(_cell, row)) for row, _ in zip(rows, range(limit), strict=False)]
    console = Console(highlight=False, markup=False, soft_wrap=True)
    narrow = [max(map(len, column)) for column in zip(names, *shown, strict=True)]
    if sum(min(width, _NAME_WIDTH) + 1 for width in narrow) <= console.width:
        _print_grid(console, names, shown)
    else:
        _print_records(console, names, shown)
    if next(rows, None) is not None:
        print(f"(the first {limit} rows; --limit shows more, --format csv all)", file=sys.stderr)


def _print_grid(console: Any, names: list[str], rows: list[tuple[str, ...]]) -> None:
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for place, name in enumerate(names):
        numeric = bool(rows) and all(_NUMBER.fullmatch(row[place]) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold", no_wrap=numeric)
    for row in rows:
        table.add_row(*row)
    console.print(table, soft_wrap=False)


def _print_records(console: Any, names: list[str], rows: list[tuple[str, ...]]) -> None:
    """Print rows that are too wide one below another, leaving out what is null."""
    width = max(map(len, names))
    for row in rows:
        for name, value in zip(names, row, strict=True):
            if value:
                console.print(f"{name:<{width}}  {value}")
        console.print()


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.3f}"
    return "" if value is None else f"{value:,}" if type(value) is int else str(value)


def _print_csv(names: list[str], rows: Iterator[tuple[Any, ...]], limit: int) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)


def _print_json(names: list[str], rows: Iterator[tuple[Any, ...]], limit: int) -> None:
    for row in rows:
        print(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, default=str))
