"""The work of ``tracelock columns``: the tables of a trace as Parquet, one file a table."""

from __future__ import annotations

from pathlib import Path

from tracelock.cli._files import prepare_folder
from tracelock.cli._progress import reading
from tracelock.cli._query import VIEWS, add_tables, load_duckdb
from tracelock.io import atomic_path
from tracelock.trace import open_trace


def run(file: Path, folder: Path, *, cache: bool) -> None:
    """Write host.parquet, device.parquet, memory.parquet and flows.parquet of the trace in `file` to `folder`."""
    duckdb = load_duckdb()
    prepare_folder(folder)
    with reading(file.name) as progress:
        trace = open_trace(file, progress, keep=cache)
    with duckdb.connect() as connection:
        add_tables(connection, trace)
        for name in VIEWS:
            target = folder / f"{name}.parquet"
            with atomic_path(target) as part:
                place = str(part).replace("'", "''")
                connection.execute(f"copy (from {name}) to '{place}' (format parquet, compression zstd)")
            print(f"{target}: {len(getattr(trace, name)):,} rows, {target.stat().st_size / 1e6:,.1f} MB")
