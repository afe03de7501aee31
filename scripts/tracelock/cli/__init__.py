"""The tracelock command. One module a command group; each has ``register(app)`` and is found by its file name."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Sequence

import typer

from tracelock.errors import TracelockError


def _groups() -> list[str]:
    """Return the names of the command modules beside this file."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def build_app(wanted: Sequence[str]) -> typer.Typer:
    """Return the command line with the groups in `wanted`; a single command loads only its own module."""
    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Evidence for why a PyTorch training job is slow, that a colleague can repeat.",
    )

    @app.callback()
    def common() -> None:
        """Evidence for why a PyTorch training job is slow, that a colleague can repeat."""

    for group in wanted:
        importlib.import_module(f"{__name__}.{group.replace('-', '_')}").register(app)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; a failure is one clear line and an exit code (2 bad input, 1 failed run)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    words, script = _apart(words)
    debug = "--debug" in words
    words = [*(word for word in words if word != "--debug"), *script]
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


def _apart(words: list[str]) -> tuple[list[str], list[str]]:
    """Return our own words, and those from ``--`` on: a command's own ``--debug`` is not ours."""
    cut = words.index("--") if "--" in words else len(words)
    return words[:cut], words[cut:]
