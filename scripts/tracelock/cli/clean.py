"""``tracelock clean``: room, without losing what a conclusion rests on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Folders = Annotated[
    list[Path] | None, typer.Argument(metavar="[RESULTS]...", help="results/<study>, or a folder of them (results).")
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Take it away; without, it is only listed.")]
OnlyOption = Annotated[
    str | None, typer.Option("--only", metavar="KINDS", help="Of traces, logs, unfinished, cache; with commas.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document, tracelock/clean/1.")]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""

    @app.command()
    def clean(
        results: Folders = None, yes: YesOption = False, only: OnlyOption = None, json: JsonOption = False
    ) -> None:
        """List what would free room, traces first; with --yes take it away.

        Kept are records, analyses, tables, figures and reports, whatever a conclusion rests on; traces of runs that
        were not analysed, and logs of runs that failed, too. A study that is being run is left alone.
        """
        from tracelock.cli._clean import run

        run(results or [Path("results")], only, yes=yes, json=json)
