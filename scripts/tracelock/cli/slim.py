"""``tracelock slim``: a small trace for a viewer out of a huge one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Source = Annotated[Path, typer.Argument(metavar="IN", help="A trace: .json, .json.gz, .zip; - reads standard input.")]
Target = Annotated[Path, typer.Argument(metavar="OUT", help="The small trace; compressed if the name ends in .gz.")]
StepsOption = Annotated[int, typer.Option("--steps", metavar="N", min=1, help="How many steps to keep.")]
FromOption = Annotated[
    int | None,
    typer.Option("--from", metavar="STEP", help="First of them: ProfilerStep#STEP. Default: the most typical."),
]
LeastOption = Annotated[
    float,
    typer.Option(
        "--min-us", metavar="US", min=0.0, help="Leave out rows shorter than this, but not what launched a kept one."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""

    @app.command()
    def slim(
        source: Source,
        target: Target,
        steps: StepsOption = 2,
        first: FromOption = None,
        least_us: LeastOption = 0.0,
    ) -> None:
        """Write the few steps of a huge trace that a viewer such as Perfetto can show.

        Kept are the rows of the host that begin in these steps, the device rows launched by them, their memory records,
        the arrows between kept rows, the names of processes and threads, and what the file says of itself.
        """
        from tracelock.cli._given import given_file
        from tracelock.cli._slim import Request, run

        with given_file(source) as (file, _):
            run(Request(file, target, steps, first, least_us))
