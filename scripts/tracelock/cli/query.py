"""``tracelock query``: SQL over the rows of a trace."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer


class Form(str, enum.Enum):
    """How rows are printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


File = Annotated[Path, typer.Argument(metavar="FILE", help="A trace: .json, .json.gz, .zip.")]
Sql = Annotated[str, typer.Argument(metavar="SQL", help="A query over host, device, memory, flows; docs/query.md.")]
FormOption = Annotated[Form, typer.Option("--format", "-f", help="How rows are printed.")]
LimitOption = Annotated[int, typer.Option("--limit", min=1, help="Rows of a printed table; CSV and JSON have all.")]
CacheOption = Annotated[
    bool, typer.Option("--cache/--no-cache", help="Keep the trace's columns for the next look, and look there first.")
]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""

    @app.command()
    def query(
        file: File, sql: Sql, form: FormOption = Form.TABLE, limit: LimitOption = 100, cache: CacheOption = True
    ) -> None:
        """Ask a trace in SQL: tracelock query FILE "select name, sum(dur) from device group by name order by 2 desc".

        The tables are host, device, memory and flows; times are microseconds. The query sees this trace alone: other
        files cannot be read or written. Needs DuckDB (pip install duckdb).
        """
        from tracelock.cli._query import run

        run(file, sql, form.value, limit, cache=cache)
