"""``tracelock conda``: a conda for those who have none."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    conda = typer.Typer(no_args_is_help=True, help="A conda for those who have none.")

    @conda.callback()
    def common() -> None:
        """A conda for those who have none."""

    conda.command()(install)
    app.add_typer(conda, name="conda")


def install(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to; absent or empty. No blanks in its path.")],
    url: Annotated[
        str | None,
        typer.Option(envvar="TRACELOCK_MINICONDA_URL", help="A mirror: the same file, or the folder that holds it."),
    ] = None,
) -> None:
    """Install the pinned Miniconda; its hash is compared before it is run, wherever it came from.

    Nothing outside DIR is changed: no shell start-up file, no other conda. Only conda-forge is set up as a channel.
    """
    from tracelock.envs.miniconda import MINICONDA
    from tracelock.envs.miniconda import install as install_conda

    program = install_conda(folder, MINICONDA.at(url))
    print(f'Ready. For this shell:  export PATH="{program.parent}:$PATH"')
