"""``tracelock doctor``: what would spoil a long run on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_MARKS = {"ok": "green", "warn": "yellow", "fail": "red"}


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command()(doctor)


def doctor(
    prefix: Annotated[Path, typer.Option("--conda-prefix", help="Folder of the environments.")] = Path(
        ".snakemake/conda"
    ),
    use_conda: Annotated[
        bool, typer.Option("--use-conda", help="The run will use conda: its faults are failures.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    root: Annotated[
        Path | None,
        typer.Option("--root", help="The project, which holds envs/ (default: this folder, or tracelock's own)."),
    ] = None,
) -> None:
    """Look over this machine before a long run; exit code 1 when something will not work."""
    from tracelock.envs.doctor import diagnose, to_json
    from tracelock.envs.facts import gather
    from tracelock.io import stable_json

    facts = gather(root, prefix)
    lines = diagnose(facts, use_conda)
    if as_json:
        print(stable_json(to_json(lines, facts)), end="")
    else:
        for line in lines:
            mark = typer.style(f"{line.status:<4}", fg=_MARKS[line.status])
            typer.echo(f"{mark}  {line.name:<15} {line.message}" + (f"\n{'':22}→ {line.hint}" if line.hint else ""))
    if any(line.status == "fail" for line in lines):
        raise typer.Exit(1)
