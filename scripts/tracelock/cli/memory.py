"""``tracelock memory``: who holds a device's memory, from PyTorch's memory snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

File = Annotated[
    Path, typer.Argument(metavar="SNAPSHOT", help="What torch.cuda.memory._dump_snapshot wrote: a .pickle.")
]
TopOption = Annotated[int, typer.Option("--top", metavar="K", min=1, help="Places of each table.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document, tracelock/memory-snapshot/1.")]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""

    @app.command()
    def memory(file: File, top: TopOption = 10, json: JsonOption = False) -> None:
        """Say who holds a device's memory at its peak, when an allocation failed, and at the end.

        The peak needs torch.cuda.memory._record_memory_history() before the work. Nothing in the pickle is ever run.
        """
        from tracelock.cli._memory import run

        run(file, top, json)
