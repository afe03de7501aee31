"""``tracelock faults``: how often the diagnosis is right, on cases whose truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document; it ends with the grade.")]
SeedsOption = Annotated[
    str,
    typer.Option("--seeds", metavar="FIRST:LAST", help="Cases to draw; seeds from 10000 on are kept for grading."),
]
FamilyOption = Annotated[
    list[str] | None, typer.Option("--family", metavar="NAME", help="Only this fault (repeatable).")
]
RealOption = Annotated[
    Path | None,
    typer.Option("--real", metavar="DIR", help="Also run the faults of the CPU for real, below DIR (three minutes)."),
]
PeersOption = Annotated[bool, typer.Option("--peers", help="Give the cases to the rules that others publish, too.")]
GpuIdleOption = Annotated[
    Path | None, typer.Option("--gpu-idle", metavar="FILE", help="The program gpu-idle, in an environment of its own.")
]
PairsOption = Annotated[
    bool, typer.Option("--pairs", help="Grade jobs with two faults instead, in full and in poorer recordings.")
]
JobsOption = Annotated[int, typer.Option("--jobs", "-j", min=1, metavar="N", help="Processes that draw cases.")]

RandomOption = Annotated[
    int, typer.Option("--random", min=0, metavar="N", help="Instead: run N workloads composed at random, below DIR.")
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, metavar="S", help="The first of the seeds of --random.")]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""

    @app.command()
    def faults(  # noqa: PLR0913, PLR0917 - options of a command line
        json: JsonOption = False,
        seeds: SeedsOption = "10000:10005",
        family: FamilyOption = None,
        real: RealOption = None,
        peers: PeersOption = False,
        gpu_idle: GpuIdleOption = None,
        jobs: JobsOption = 1,
        pairs: PairsOption = False,
        random: RandomOption = 0,
        seed: SeedOption = 0,
    ) -> None:
        """Grade the diagnosis: simulated faults and healthy jobs with known truth, and real ones on this CPU."""
        if random:
            from tracelock.cli._random_faults import run as run_random

            run_random(real, random, seed, json)
            return
        from tracelock.cli._faults import Request, run, run_pairs

        if pairs:
            run_pairs(seeds, jobs, as_json=json)
            return
        run(Request(seeds, tuple(family or ()), real, peers or gpu_idle is not None, gpu_idle, jobs, json))
