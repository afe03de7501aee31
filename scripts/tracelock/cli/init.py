"""``tracelock init``: a workload and a study that run at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to write; made if it is not there.")]
NameOption = Annotated[str | None, typer.Option("--name", help="Name of the study (that of the folder).")]
CommandOption = Annotated[
    str | None, typer.Option("--command", metavar="LINE", help='Measure your own script instead: "python train.py".')
]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""

    @app.command()
    def init(folder: Folder = Path(), name: NameOption = None, command: CommandOption = None) -> None:
        """Write a study and a workload that run as they are, to begin with.

        The study asks how many processes should load the data; change what it varies, and the workload's dataset, model
        and loss, into yours. With --command it measures your own training script, which stays unchanged.
        """
        import shlex

        from tracelock.study.load import load_plan
        from tracelock.study.starting import start, suggested, words_of

        chosen = suggested(folder.resolve().name) if name is None else name
        files = start(folder, chosen, words_of(command) if command is not None else ())
        print(f"{files[0]}: the study: what is varied, and how often it is measured")
        for file in files[1:]:
            print(f"{file}: the workload: put your dataset, model and loss in the place of its own")
        plan = load_plan(files[0])
        print(f"\n{len(plan.variants)} variants, {len(plan.runs)} runs. Next:")
        place = shlex.quote(str(files[0]))
        print(f"  tracelock study plan {place}     # what would be measured")
        print(f"  tracelock study run {place}      # measure, explain, compare")
