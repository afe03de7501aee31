"""One process at a time runs a study; who else starts it hears who does. A dead one's lock is no lock.

The lock is a POSIX one beside the results folder, held by the Snakemake process itself, so that it is the same whether
a person started that or `tracelock study run`. Whoever holds it knows that Snakemake's own lock files of this study,
which do not say whose they are, are a dead process's.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from tracelock.errors import EXIT_FAILED, Problem, TracelockError
from tracelock.runner import identity
from tracelock.runner.claims import claim, has_no_locks, holder_pid, write_note
from tracelock.runner.process import note_thread_variables

# What is left of a killed start ends within seconds; a run that ignores signals is killed after 30.
_ENDING_S = 60.0


def lock_file(base: str) -> Path:
    """Return the lock of the study whose results lie in `base`."""
    folder = Path(base)
    return folder.parent / f".{folder.name}.lock"


def hold_study(workflow: Any, base: str) -> None:
    """Have a workflow take the lock of its study when it starts to run something, and keep it to its end.

    Reading the workflow is not running it (dry runs, ``--lint``, ``--unlock``), and Snakemake asks for its own lock
    before ``onstart``: hence around its ``execute``.

    Parameters
    ----------
    workflow
        The object of that name in a Snakefile.
    """
    if not workflow.is_main_process:
        return
    execute = workflow.execute

    def locked(executor_plugin: Any, *arguments: Any, **options: Any) -> Any:
        if not executor_plugin.common_settings.dryrun_exec:
            take_study(base, Path(".snakemake/locks"))
        return execute(executor_plugin, *arguments, **options)

    workflow.execute = locked


def take_study(base: str, snakemake_locks: Path) -> None:
    """Take the lock of a study to the end of this process.

    Raises
    ------
    SystemExit
        With one line, if another process runs the study.
    """
    who = identity.describe(study=Path(base).name, driver=os.environ.get(identity.DRIVER_VARIABLE))
    os.environ.setdefault(identity.DRIVER_VARIABLE, identity.driver_text(who))
    note_thread_variables()
    path = lock_file(base)
    ours = None
    try:
        await_study(base)
        path.parent.mkdir(parents=True, exist_ok=True)
        ours = claim(path)
    except TracelockError as error:
        _refuse([str(problem) for problem in error.problems])
    except OSError as error:
        if has_no_locks(error):
            print(f"tracelock: {path.parent} has no file locks: start a study there once at a time", file=sys.stderr)
            return
        _refuse([str(_unwritable(path, error))])
    if ours is None:  # taken in this very moment
        _refuse([str(_held(base, _note(path)))])
    write_note(ours, json.dumps(who))
    _remove_stale(snakemake_locks, base)


def await_study(base: str, say: Callable[[str], None] | None = None) -> None:
    """Wait for what is left of a start that was killed.

    Raises
    ------
    TracelockError
        If a process runs the study, with its pid, start and command.
    """
    path = lock_file(base)
    if not path.is_file():
        return
    deadline, told = time.monotonic() + _ENDING_S, False
    while _is_held(path):
        note = _note(path)
        left_alone = identity.driver_alive(str(note.get("driver"))) is False
        if not left_alone or time.monotonic() > deadline:
            raise TracelockError(_held(base, note), EXIT_FAILED)
        if say and not told:
            say(f"waiting for the end of what a killed start left: pid {note.get('pid')}")
            told = True
        time.sleep(0.2)


def _is_held(path: Path) -> bool:
    if holder_pid(path) is not None:
        return True
    try:
        found = claim(path)
    except OSError as error:
        if has_no_locks(error):
            return False
        raise TracelockError(_unwritable(path, error), EXIT_FAILED) from None
    if found:
        found.release()
    return found is None


def _unwritable(path: Path, error: OSError) -> Problem:
    return Problem(str(path), f"cannot be written: {error.strerror}", "let it be written, then start again")


def _held(base: str, note: Mapping[str, Any]) -> Problem:
    hint = f"wait for its end, or end it: kill {note['pid']}" if note.get("pid") else "wait for its end"
    who = identity.told(note) if note.get("pid") else "another process"
    return Problem(base, f"this study is being run by {who}", hint)


def _note(path: Path) -> dict[str, Any]:
    """Return who holds a lock, as far as it is written down."""
    try:
        note = dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):  # it is about to be written
        note = {}
    return note if {"pid", "since"} <= set(note) else {}


def _remove_stale(folder: Path, base: str) -> None:
    """Remove Snakemake's lock files that name files of this study: nobody else runs it."""
    for file in folder.glob("*.lock"):
        with contextlib.suppress(OSError):
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
            if any(line.startswith(f"{base}/") for line in lines):
                file.unlink()


def _refuse(lines: list[str]) -> NoReturn:
    print("\n".join(f"tracelock: error: {line}" for line in lines), file=sys.stderr)
    raise SystemExit(EXIT_FAILED)
