"""The work of ``tracelock profile``: run the command, keep its runs, explain them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from rich.console import Console

from tracelock.cli._script_answer import show_nothing, show_run
from tracelock.cli._script_files import Explained, explain, write_page
from tracelock.errors import Problem, TracelockError
from tracelock.io import schema, stable_json
from tracelock.runner.command.collect import Around, Process, processes
from tracelock.runner.command.keep import keep
from tracelock.runner.command.launch import launch, request_for, scratch
from tracelock.runner.command.signals import end_like
from tracelock.runner.command.watching import Watcher


@dataclass(frozen=True)
class Asked:
    """What was asked for on the command line; `options` are those of the request to the script's processes."""

    command: Sequence[str]
    output: Path | None
    options: dict[str, Any]
    max_trace_mb: float
    json: bool


@dataclass(frozen=True)
class Outcome:
    """What came of the command: its processes that made steps, and the folders of their runs."""

    exit_code: int
    found: list[Process]
    folders: list[Path]


def run(asked: Asked) -> int:
    """Run the command, explain what its steps did, and return its exit code."""
    folder = asked.output or default_folder(asked.command)
    check_step(asked.options.get("step"))
    outcome = measure(asked, folder)
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    explained = explain(outcome.folders)
    page = write_page(explained, folder)
    if asked.json:
        sys.stdout.write(stable_json(_document(asked, outcome, explained)))
    elif explained:
        show_run(explained, outcome.exit_code, folder, page, console)
    if not explained:
        show_nothing(outcome.found, asked.options, console)
    return end_like(outcome.exit_code)


def check_step(step: str | None) -> None:
    """Refuse what cannot be meant.

    Raises
    ------
    TracelockError
        For a step that is no ``module:function``.
    """
    module, _, function = (step or "x:x").rpartition(":")
    if not module or not function.replace(".", "_").isidentifier():
        what = f"is {step!r}, expected module:function or module:Class.method"
        raise TracelockError(Problem("--step", what, "a function of the script itself: __main__:function"))


def measure(asked: Asked, folder: Path) -> Outcome:
    """Run the command and keep its runs in `folder`."""
    started, there = _now(), folder.exists()
    with ExitStack() as stack:
        place = stack.enter_context(scratch(folder))
        watcher = Watcher(place)
        request = request_for(place, **asked.options)
        code = launch(asked.command, request, watcher, stdout=2 if asked.json else None)
        found = processes(place, watcher.processes)
        around = Around(asked.command, started, _now(), code)
        folders = keep(found, around, folder, asked.max_trace_mb)
    if not folders and not there:
        _remove_empty(folder)
    return Outcome(code, found, folders)


def default_folder(command: Sequence[str]) -> Path:
    """Return a folder of its own for this run, named after the script."""
    scripts = [word for word in command[1:] if not word.startswith("-")] or [command[0]]
    named = next((word for word in scripts if word.endswith((".py", ".sh"))), scripts[0])
    stem = Path(named).stem or "script"
    safe = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in stem)[:60]
    return Path("tracelock-runs") / f"{safe}-{datetime.now():%Y%m%d-%H%M%S}"


def _remove_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return


def _now() -> str:
    return datetime.now(timezone.utc).isoformat()


def _document(asked: Asked, outcome: Outcome, explained: Sequence[Explained]) -> dict[str, Any]:
    """Return ``tracelock/profile/1``: every process's run and analysis."""
    return {
        "schema": schema("profile"),
        "command": list(asked.command),
        "exit_code": outcome.exit_code,
        "steps": max((process.steps for process in outcome.found), default=0),
        "runs": [
            {"folder": str(each.folder), "run": each.run, "analysis": each.document, "unknown": each.why}
            for each in explained
        ],
    }
