"""``tracelock cure -- COMMAND``: profile a script, try what should help, and say what to change in its code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Command = Annotated[
    list[str], typer.Argument(metavar="-- COMMAND...", help="The command as you type it: python train.py --lr 0.1")
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="DIR", help="Folder of the results (tracelock-runs/...).")
]
Repeats = Annotated[int, typer.Option(min=2, help="Runs of each change, and of the script as it is.")]
Rounds = Annotated[int, typer.Option(min=1, max=20, help="Rounds: the next starts from the best of the last.")]
Budget = Annotated[float, typer.Option(min=0.1, help="Minutes that the changes may take.")]
Warmup = Annotated[int, typer.Option(min=0, help="Steps of warm-up in each run.")]
Timed = Annotated[int, typer.Option(min=1, help="Timed steps in each run.")]
Limit = Annotated[float, typer.Option(min=1, help="Seconds that one run may take.")]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""

    @app.command(context_settings={"allow_interspersed_args": False})
    def cure(  # noqa: PLR0913, PLR0917  one a command-line option
        command: Command,
        output: Output = None,
        repeats: Repeats = 3,
        rounds: Rounds = 2,
        budget: Budget = 30.0,
        warmup: Warmup = 3,
        timed: Timed = 20,
        limit_s: Limit = 300.0,
    ) -> None:
        """Find what slows a training script, try what should help, and say what to change in its code.

        The script is run several times, each time to its recorded window and no further. What the diagnosis proposes is
        applied from outside and measured; nothing is edited.
        """
        from tracelock.cli._cure import Asked, run

        raise typer.Exit(run(Asked(command, output, repeats, rounds, budget, warmup, timed, limit_s)))
