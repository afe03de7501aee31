"""``tracelock report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""

    @app.command()
    def report(
        folder: Annotated[Path, typer.Argument(metavar="DIR", help="Results of a study: results/<experiment>.")],
        output: Annotated[Path | None, typer.Option("--output", "-o", help="The report (DIR/report.html).")] = None,
    ) -> None:
        """Compare the runs of a study, draw its figures, write its report, and print the answer."""
        from tracelock.report.figures import write_figures
        from tracelock.report.html import write_report
        from tracelock.report.summary import print_summary
        from tracelock.study import comparison
        from tracelock.study.compare import compare
        from tracelock.study.tables import write_tables

        found = compare(folder)
        write_tables(found, folder / "tables")
        comparison.write(folder / "comparison.json", found)
        write_figures(found, folder / "figures")
        write_report(folder, output or folder / "report.html")
        print_summary(folder)
