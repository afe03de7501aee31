"""The command line as the parser knows it: loaded only where there is something to parse."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Annotated

import typer

import tracelock
from tracelock.cli._examples import add_examples


def _print_version(wanted: bool) -> None:
    if wanted:
        print(tracelock.__version__)
        raise typer.Exit


VersionOption = Annotated[
    bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
]
# Both are taken out of the words before, so that they may stand anywhere; here they are for the help.
QuietOption = Annotated[bool, typer.Option("--quiet", help="Print the answer alone, no progress and no tables.")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def app_of(wanted: Sequence[str]) -> typer.Typer:
    """Return the command line with the groups in `wanted`; a single command loads only its own module."""
    app = typer.Typer(
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Evidence for why a PyTorch training job is slow, that a colleague can repeat.",
    )

    @app.callback()
    def common(
        _version: VersionOption = False,
        _quiet: QuietOption = False,
        _debug: DebugOption = False,
    ) -> None:
        """Evidence for why a PyTorch training job is slow, that a colleague can repeat."""

    for group in wanted:
        importlib.import_module(f"{__package__}.{group.replace('-', '_')}").register(app)
    add_examples(app)
    return app
