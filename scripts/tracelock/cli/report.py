"""``tracelock report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Sources = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...|DIR", help="Traces, ranks of one job if several; or a study: results/<experiment>."
    ),
]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", help="The page (DIR/report.html; FILE-report.html here for traces).")
]
CacheOption = Annotated[
    bool, typer.Option("--cache/--no-cache", help="Keep the trace's columns for the next look, and look there first.")
]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""

    @app.command()
    def report(sources: Sources, output: OutputOption = None, cache: CacheOption = True) -> None:
        """Write a page that answers: of traces (timeline, operators, memory, …), or of a study.

        The page is one file that needs no network. Of a study, the runs are compared and its figures drawn as well.
        """
        from tracelock.cli._given import expanded

        sources = expanded(sources)
        if len(sources) == 1 and sources[0].is_dir() and not (sources[0] / "trace.json.gz").is_file():
            _study(sources[0], output)
        else:
            _traces([path / "trace.json.gz" if path.is_dir() else path for path in sources], output, cache)


def _traces(files: list[Path], output: Path | None, cache: bool) -> None:
    from tracelock.cli._trace_report import run

    place, found = run(files, output, cache=cache)
    for each in found:
        print(each.verdict if len(found) == 1 else f"{each.trace.file}: {each.verdict}")
    print(f"Report: {place}")


def _study(folder: Path, output: Path | None) -> None:
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
