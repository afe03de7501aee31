"""``tracelock profile -- COMMAND``: a training script, as it is, timed, recorded and explained."""

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
StepOption = Annotated[
    str | None,
    typer.Option("--step", metavar="MODULE:FUNCTION", help="A call of this function is a step (no optimizer)."),
]
Warmup = Annotated[int | None, typer.Option(min=0, help="Steps of warm-up; without it until steps are steady.")]
Timed = Annotated[int | None, typer.Option(min=1, help="Timed steps; without it by their length, 10 to 100.")]
Active = Annotated[int | None, typer.Option(min=1, help="Recorded steps (3).")]
StopAfter = Annotated[bool, typer.Option("--stop-after", help="End the script when the window is recorded.")]
Stacks = Annotated[bool, typer.Option("--stacks", help="Record Python stacks, too; slows the recorded steps.")]
NoShapes = Annotated[bool, typer.Option("--no-shapes", help="Do not record the shapes of operators.")]
NoMemory = Annotated[bool, typer.Option("--no-memory", help="Do not record allocations.")]
MaxTrace = Annotated[float, typer.Option(min=0.1, help="Largest compressed trace that is kept, MB.")]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout; the script's output goes to stderr.")
]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""

    @app.command(context_settings={"allow_interspersed_args": False})
    def profile(  # noqa: PLR0913, PLR0917  one a command-line option
        command: Command,
        output: Output = None,
        step: StepOption = None,
        warmup: Warmup = None,
        timed: Timed = None,
        active: Active = None,
        stop_after: StopAfter = False,
        stacks: Stacks = False,
        no_shapes: NoShapes = False,
        no_memory: NoMemory = False,
        max_trace_mb: MaxTrace = 500.0,
        json: JsonOption = False,
    ) -> None:
        """Run a training command, unchanged, and say why its steps take as long as they do.

        Steps are found by the optimizer's calls. First they are timed without the profiler, then some are recorded;
        the script goes on to its own end, and the exit code is its own. The answer goes to stderr.
        """
        from tracelock.cli._profile import Asked, run

        window = {"record_shapes": not no_shapes, "profile_memory": not no_memory, "with_stack": stacks}
        plan = {"step": step, "warmup": warmup, "timed": timed, "active": active, "stop_after": stop_after}
        raise typer.Exit(run(Asked(command, output, {**plan, **window}, max_trace_mb, json)))
