"""``tracelock compare``: two traces, runs, variants or studies beside each other; a gate for CI."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Before = Annotated[Path, typer.Argument(metavar="BEFORE", help="A trace, a run's or variant's folder, or a study's.")]
After = Annotated[Path, typer.Argument(metavar="AFTER", help="What is held against it, of the same kind.")]
TopOption = Annotated[int, typer.Option("--top", metavar="K", min=1, help="Rows of each ranked table.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document, tracelock/pair/1.")]
MarkdownOption = Annotated[bool, typer.Option("--markdown", help="Print Markdown, for a pull request.")]
JunitOption = Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML, too.")]
FailOption = Annotated[
    str | None, typer.Option("--fail-above", metavar="SHARE", help="Exit with 1 where AFTER takes longer by more: 5%.")
]
AnywayOption = Annotated[bool, typer.Option("--anyway", help="Compare what does not go together, too.")]
CacheOption = Annotated[
    bool, typer.Option("--cache/--no-cache", help="Keep the trace's columns for the next look, and look there first.")
]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""

    @app.command()
    def compare(  # noqa: PLR0913, PLR0917  one parameter an option
        before: Before,
        after: After,
        top: TopOption = 10,
        json: JsonOption = False,
        markdown: MarkdownOption = False,
        junit: JunitOption = None,
        fail_above: FailOption = None,
        anyway: AnywayOption = False,
        cache: CacheOption = True,
    ) -> None:
        """Say whether AFTER is slower than BEFORE, how certain that is, and what changed.

        Several runs on both sides get an interval and a verdict; bare traces are one sample each. With --fail-above the
        exit code is 1 where a case is slower by more than that, 0 where it is not, 2 where nothing can be compared.
        """
        from tracelock.cli._compare import Request, run

        raise typer.Exit(run(Request(before, after, top, json, markdown, junit, fail_above, anyway, cache)))
