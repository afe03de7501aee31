"""``tracelock reproduce``: repeat the study of an archive, and say whether it comes to the same."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Bundle = Annotated[Path, typer.Argument(metavar="BUNDLE", help="An archive of tracelock bundle.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="New folder for it (default: <BUNDLE>-reproduced).")
]
AnalysisOnly = Annotated[
    bool, typer.Option("--analysis-only", help="Only tables and figures, from the stored records.")
]
EnvOnly = Annotated[bool, typer.Option("--env-only", help="Only build the environment and check it.")]
Runs = Annotated[int | None, typer.Option("--runs", min=1, metavar="N", help="Runs of each variant; the study's own.")]
Device = Annotated[str | None, typer.Option("--device", help="auto, cpu or cuda, in place of the study's.")]
Here = Annotated[bool, typer.Option("--here", help="Measure in the environment of this tracelock; results are marked.")]
Trust = Annotated[bool, typer.Option("--trust", help="Run the code of the archive without asking.")]
Json = Annotated[bool, typer.Option("--json", help="Print the verdict as JSON.")]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""

    @app.command()
    def reproduce(  # noqa: PLR0913, PLR0917  the options of a command
        bundle: Bundle,
        output: Output = None,
        analysis_only: AnalysisOnly = False,
        env_only: EnvOnly = False,
        runs: Runs = None,
        device: Device = None,
        here: Here = False,
        trust: Trust = False,
        json: Json = False,
    ) -> None:
        """Repeat the study of an archive. Exit code: 0 the same, 1 not or not certain, 2 bad input.

        The archive is checked and unpacked first. Nothing of it runs before you have agreed.
        """
        from tracelock.bundle.rerun import Request
        from tracelock.cli import _reproduce

        _reproduce.check_options(analysis_only, env_only, device)
        target = output or Path(f"{bundle.stem}-reproduced")
        asked = _reproduce.Asked(bundle, target, Request(runs, device, here), trust, json)
        if analysis_only:
            code = _reproduce.analysis(asked)
        else:
            code = _reproduce.environment(asked) if env_only else _reproduce.measurement(asked)
        raise typer.Exit(code)
