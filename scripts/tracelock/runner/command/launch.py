"""Starts a command with our modules in the path of its Python processes."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tracelock.errors import Problem, TracelockError, nearest
from tracelock.runner import outside
from tracelock.runner.command.signals import run_through
from tracelock.runner.outside.enter import VARIABLE
from tracelock.runner.outside.request import Request

SITE = Path(outside.__file__).resolve().parent / "site"


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, negative for a signal, and seconds."""

    exit_code: int
    seconds: float


@contextmanager
def scratch(beside: Path) -> Iterator[Path]:
    """Yield a folder for what the processes write, beside the results, so that files can be moved there."""
    beside.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=".outside-", dir=beside)).resolve()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def launch(
    command: Sequence[str],
    request: Request,
    meanwhile: Callable[[int, float], None],
    stdout: int | None = None,
    overdue: Callable[[], bool] = lambda: False,
    more: Mapping[str, str] | None = None,
) -> int:
    """Run `command` as a person would, its processes watched as `request` says, and return its exit code.

    Parameters
    ----------
    overdue
        Says whether it is to be ended now.
    more
        Further variables of its environment.

    Raises
    ------
    TracelockError
        If there is no such program (exit code 127) or it cannot be run (126), as a shell has it.
    """
    file = Path(request.folder) / "request.json"
    file.write_text(json.dumps(asdict(request)), encoding="utf-8")
    environment = environment_for(file, {**os.environ, **(more or {})})
    try:
        return run_through(command, environment, stdout, meanwhile, overdue)
    except OSError as error:
        raise TracelockError(
            _not_run(command[0], error), 127 if isinstance(error, FileNotFoundError) else 126
        ) from None


def environment_for(request: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return `environment` with what reaches every Python process below it."""
    former = environment.get("PYTHONPATH")
    path = f"{SITE}{os.pathsep}{former}" if former else str(SITE)
    quiet = {"KINETO_LOG_LEVEL": "5"}  # the profiler's notes on stderr would be no output of the script
    return {**quiet, **environment, "PYTHONPATH": path, VARIABLE: str(request.resolve())}


def _not_run(program: str, error: OSError) -> Problem:
    if not isinstance(error, FileNotFoundError):
        return Problem(program, f"cannot be run: {error.strerror}")
    if program.endswith(".py"):
        return Problem(program, "is no program", f"tracelock profile -- python {program}")
    known = ["python", "python3", "torchrun", "accelerate", "bash"]
    return Problem(program, "there is no such program on the path", nearest(program, known))


def request_for(folder: Path, **options: Any) -> Request:
    """Return a request whose processes write below `folder`."""
    return Request(folder=str(folder), **options)
