"""``tracelock columns``: the rows of a trace for pandas, Polars and DuckDB."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

File = Annotated[Path, typer.Argument(metavar="FILE", help="A trace: .json, .json.gz, .zip.")]
FolderOption = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Where the files go.")]
CacheOption = Annotated[
    bool, typer.Option("--cache/--no-cache", help="Keep the trace's columns for the next look, and look there first.")
]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""

    @app.command()
    def columns(file: File, output: FolderOption, cache: CacheOption = True) -> None:
        """Write the rows of a trace as Parquet: host, device, memory and flows, as docs/query.md describes them.

        Needs DuckDB (pip install duckdb).
        """
        from tracelock.cli._columns import run

        run(file, output, cache=cache)
