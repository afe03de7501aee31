"""The tracelock command. One module a command group; each has ``register(app)`` and is found by its file name."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

import tracelock
from tracelock.cli._quiet import QUIET
from tracelock.errors import TracelockError


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


def _groups() -> list[str]:
    """Return the names of the command modules beside this file."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def build_app(wanted: Sequence[str]) -> typer.Typer:
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
        importlib.import_module(f"{__name__}.{group.replace('-', '_')}").register(app)
    return app


def _common_options(words: list[str]) -> tuple[list[str], list[str]]:
    """Return the words without the options of every command, and those; what follows ``--`` is somebody else's."""
    end = words.index("--") if "--" in words else len(words)
    common = [word for word in words[:end] if word in ("--debug", "--quiet")]
    return [word for word in words[:end] if word not in common] + words[end:], common


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; a failure is one clear line and an exit code (2 bad input, 1 failed run)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    words, common = _common_options(words)
    debug = "--debug" in common
    if "--quiet" in common:
        os.environ[QUIET] = "1"
    groups = _groups()
    first = words[0].replace("-", "_") if words else ""
    app = build_app([first] if first in groups else groups)
    try:
        app(words, prog_name="tracelock")
    except TracelockError as error:
        if debug:
            raise
        for problem in error.problems:
            print(f"tracelock: error: {problem}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
