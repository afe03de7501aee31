"""``tracelock watch -- COMMAND``: what a training run does, while it runs, without the profiler."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Command = Annotated[
    list[str], typer.Argument(metavar="-- COMMAND...", help="The command as you type it: python train.py --lr 0.1")
]
Output = Annotated[Path | None, typer.Option("--output", "-o", metavar="DIR", help="Folder of a profile on slow-down.")]
StepOption = Annotated[
    str | None, typer.Option("--step", metavar="MODULE:FUNCTION", help="A call of this function is a step.")
]
Jsonl = Annotated[Path | None, typer.Option("--jsonl", metavar="FILE", help="Append a JSON line a second.")]
Textfile = Annotated[
    Path | None, typer.Option("--prometheus", metavar="FILE", help="Keep a textfile for Prometheus' node exporter.")
]
OnSlowdown = Annotated[
    bool, typer.Option("--profile-on-slowdown", help="Record a few steps once, when they become slower.")
]
Active = Annotated[int, typer.Option(min=1, help="Steps of that profile.")]
Dcgm = Annotated[str | None, typer.Option("--dcgm", metavar="URL", help="A DCGM exporter: http://host:9400/metrics.")]
Every = Annotated[float, typer.Option(min=0.5, help="Seconds between plain lines.")]
Plain = Annotated[bool, typer.Option("--plain", help="Plain lines in a terminal, too.")]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""

    @app.command(context_settings={"allow_interspersed_args": False})
    def watch(  # noqa: PLR0913, PLR0917  one a command-line option
        command: Command,
        output: Output = None,
        step: StepOption = None,
        jsonl: Jsonl = None,
        prometheus: Textfile = None,
        profile_on_slowdown: OnSlowdown = False,
        active: Active = 3,
        dcgm: Dcgm = None,
        every: Every = 10.0,
        plain: Plain = False,
    ) -> None:
        """Run a training command, unchanged, and tell how long its steps take while it runs.

        Step times, loading share, memory, CPU and GPU; when steps become slower than their own past by more than their
        noise, it says so. The view goes to stderr; exit code and output are the script's own.
        """
        from tracelock.cli._watch import Asked, run

        window = active if profile_on_slowdown else 0
        raise typer.Exit(run(Asked(command, output, step, jsonl, prometheus, window, dcgm, every, plain)))
