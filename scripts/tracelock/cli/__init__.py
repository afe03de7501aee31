"""The tracelock command. One module a command group; each has ``register(app)`` and is found by its file name."""

from __future__ import annotations

import os
import pkgutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tracelock.cli._quiet import QUIET
from tracelock.errors import TracelockError

if TYPE_CHECKING:
    import typer


def _groups() -> list[str]:
    """Return the names of the command modules beside this file."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def build_app(wanted: Sequence[str]) -> typer.Typer:
    """Return the command line with the groups in `wanted`; a single command loads only its own module."""
    from tracelock.cli._app import app_of

    return app_of(wanted)


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
    try:
        _run(words)
    except TracelockError as error:
        if debug:
            raise
        for problem in error.problems:
            print(f"tracelock: error: {problem}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)


def _run(words: list[str]) -> None:
    """Run one command; the commonest takes a short cut, as the parser takes longer to load than a small trace."""
    rest = words[1:]
    files = [Path(word) for word in rest if word != "--json"]
    if words[:1] == ["analyze"] and files and all(word == "--json" or not word.startswith("-") for word in rest):
        from tracelock.cli._analyze import Request, run

        try:
            sys.exit(run(Request(files, json="--json" in rest)))
        except KeyboardInterrupt:
            print("Aborted!", file=sys.stderr)
            sys.exit(130)
    groups = _groups()
    first = words[0].replace("-", "_") if words else ""
    build_app([first] if first in groups else groups)(words, prog_name="tracelock")
