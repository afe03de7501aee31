"""``tracelock analyze``: the answer, the figures and the findings of traces that somebody has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...", help="Traces: .json, .json.gz, .zip; 'run/*.json.gz' for several; - is standard input."
    ),
]
StepOption = Annotated[int | None, typer.Option("--step", metavar="N", help="Only ProfilerStep#N.")]
TopOption = Annotated[int, typer.Option("--top", metavar="K", min=1, help="Rows of each ranked table.")]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document per trace, each on a line if several.")
]
FolderOption = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="DIR", help="Write analysis.json and CSV tables there.")
]
CacheOption = Annotated[
    bool, typer.Option("--cache/--no-cache", help="Keep the trace's columns for the next look, and look there first.")
]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""

    @app.command()
    def analyze(
        files: Files,
        step: StepOption = None,
        top: TopOption = 10,
        json: JsonOption = False,
        output: FolderOption = None,
        cache: CacheOption = False,
    ) -> None:
        """Say why a step takes as long as it does: the answer first, then the figures.

        Several ranks of one job are compared: who arrives last, and how long the others wait. A file that cannot be
        read gets one line, the others are analysed all the same, and the exit code is 2.
        """
        from tracelock.cli._analyze import Request, run

        raise typer.Exit(run(Request(files, step, top, json, output, cache)))
