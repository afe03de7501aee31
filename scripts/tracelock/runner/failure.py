"""failure.json: why a run has no result, for the screen, the report and other programs (``tracelock/failure/1``)."""

from __future__ import annotations

import re
import signal
import socket
import sys
import sysconfig
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tracelock.errors import EXIT_FAILED, Problem, TracelockError
from tracelock.io import digest, schema
from tracelock.runner import phase
from tracelock.runner.process import OverdueError, Stopped

FAILURE = "failure.json"
USER_CODE, OUT_OF_MEMORY, CUDA, TIME_LIMIT = "user-code", "out-of-memory", "cuda-error", "time-limit"
SIGNAL, EMPTY_LOADER, EXIT, SETUP = "signal", "empty-loader", "exit", "setup"
CAUSES = {
    USER_CODE: "exception in the workload's code",
    OUT_OF_MEMORY: "out of memory",
    CUDA: "CUDA error",
    TIME_LIMIT: "time limit",
    SIGNAL: "ended by a signal",
    EMPTY_LOADER: "the loader gives no batch",
    EXIT: "the workload's code ended the process",
    SETUP: "could not start",
}
TAIL_LINES = 20
_LONGEST = 300
# How torch marks the traceback of a loading process.
ORIGINAL = "Original Traceback"
_FRAME = re.compile(r'File "([^"]+)", line (\d+),? in (\S+)')
_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "Cannot allocate memory",
    "shared memory (shm)",
)
_DEVICE = ("CUDA", "CUBLAS", "cuBLAS", "cuDNN", "CUDNN", "NCCL", "HIP error", "NVIDIA driver")
# torch/csrc/DataLoader.cpp; the name is strsignal's.
_LOADING = re.compile(r"DataLoader worker \(pid\(?s?\)? (\d+)\) is killed by signal: ([A-Za-z ]+)")
_PACKAGE = Path(__file__).resolve().parents[1]


class EmptyLoaderError(TracelockError):
    """The workload's loader gives no batch."""

    def __init__(self) -> None:
        super().__init__("the workload's loader gives no batch", EXIT_FAILED)


class LimitError(TracelockError):
    """A limit of the study leaves nothing to measure."""


@dataclass(frozen=True)
class Failed:
    """Why a run has no result, before it is told.

    Parameters
    ----------
    cause
        One of `CAUSES`.
    what
        The exception, or what happened, in one line.
    exception
        The exception's class, or None.
    where
        ``file``, ``line`` and ``function`` of the user's code, or None.
    signal
        The signal's name, or None.
    exit_code
        What the process ended with, or None.
    """

    cause: str
    what: str
    exception: str | None = None
    where: dict[str, Any] | None = None
    signal: str | None = None
    exit_code: int | None = None


def of_exception(error: BaseException) -> Failed:
    """Return why a run failed that ended with `error`."""
    if isinstance(error, Stopped):
        return Failed(SIGNAL, str(error), signal=signal.Signals(error.number).name)
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        return Failed(EXIT, _line(error), "SystemExit", _place(error), exit_code=code)
    if isinstance(error, (EmptyLoaderError, LimitError, OverdueError)):
        place = _place(error) if isinstance(error, OverdueError) else None
        return Failed(
            EMPTY_LOADER if isinstance(error, EmptyLoaderError) else TIME_LIMIT, short(str(error)), None, place
        )
    if loading := _of_loading_process(f"{error}\n{error.__cause__}"):
        return loading
    if isinstance(error, TracelockError) and ORIGINAL not in str(error):
        return Failed(SETUP, short(str(error)))
    return Failed(_kind(error), _line(error), type(error).__name__, _place(error))


def told_by_kernel(failed: Failed, killed_for_memory: bool) -> Failed:
    """Return `failed`, as lack of memory where a loading process was killed and the kernel says that it did that."""
    if not killed_for_memory or (failed.cause, failed.signal) != (SIGNAL, signal.SIGKILL.name):
        return failed
    what = "the system ended a loading process for lack of memory: fewer num_workers, or less memory in each"
    return replace(failed, cause=OUT_OF_MEMORY, what=what)


def told_by_signal(failed: Failed, number: int | None) -> Failed:
    """Return `failed`, as ended by a signal where the run was asked to end before its code raised an exception.

    A batch system signals every process of a job at once: a pipe whose reader has ended, or a child that is gone, is
    then what the exception speaks of.
    """
    if number is None or failed.cause != USER_CODE:
        return failed
    name = signal.Signals(number).name
    return replace(failed, cause=SIGNAL, what=short(f"stopped by {name}; on the way: {failed.what}"), signal=name)


def _of_loading_process(text: str) -> Failed | None:
    """Return why a run failed whose loading process was ended by a signal, as torch's message tells it."""
    found = _LOADING.search(text)
    if not found:
        return None
    number = next((each for each in signal.Signals if signal.strsignal(each) == found[2]), None)
    if number == signal.SIGBUS:
        what = f"loading process {found[1]} had no room in shared memory (/dev/shm): more of it, or fewer num_workers"
        return Failed(OUT_OF_MEMORY, what, signal=number.name)
    name = number.name if number else f"the signal {found[2]!r}"
    return Failed(SIGNAL, f"loading process {found[1]} was ended by {name}", signal=number.name if number else None)


def of_ending(number: int | None, code: int | None, log: Sequence[str], killed_for_memory: bool) -> Failed:
    """Return why a process failed that said nothing itself.

    Parameters
    ----------
    number, code
        The signal that ended it, or its exit code.
    log
        The last lines of its log: Python's fault handler writes there where it was.
    killed_for_memory
        Whether the kernel ended a process for lack of memory meanwhile.
    """
    where = place_in("\n".join(log[_last(log, "most recent call first") :]))
    if number is None:
        return Failed(EXIT, f"the process ended with exit code {code}", None, where, exit_code=code)
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    if killed_for_memory and number == signal.SIGKILL:
        return Failed(OUT_OF_MEMORY, "the system ended it for lack of memory", None, where, name)
    return Failed(SIGNAL, f"ended by {name}", None, where, name)


def document(failed: Failed, spec: Any, repeat: int, token: str, log: Sequence[str]) -> dict[str, Any]:
    """Return failure.json."""
    at = phase.current()["phase"]
    body = {
        "cause": failed.cause,
        "what": failed.what,
        "exception": failed.exception,
        "where": failed.where,
        "signal": failed.signal,
        "exit_code": failed.exit_code,
        "phase": at,
    }
    same = [failed.cause, failed.exception, failed.where, at, failed.what]
    return {
        "schema": schema("failure"),
        "experiment": spec.experiment,
        "environment": spec.environment,
        "variant": spec.variant,
        "repeat": repeat,
        "digest": spec.digest,
        "token": token,
        "host": socket.gethostname(),
        "ended": datetime.now(timezone.utc).isoformat(),
        **body,
        "before_steps": at in phase.BEFORE_STEPS,
        "same": digest(same)[:16],  # equal for failures of one kind
        "log": "log.txt",
        "log_tail": [line[:_LONGEST].rstrip() for line in log[-TAIL_LINES:]],
    }


def problem(failed: Failed, log: Path) -> Problem:
    """Return one line for a person: cause, exception, line of the user's code, log."""
    what = failed.what if failed.exception is None else f"{failed.exception}: {failed.what}"
    return Problem("the run failed", f"{what}{place_text(failed.where)}", f"traceback in {log}")


def place_text(where: dict[str, Any] | None) -> str:
    """Return `` at file:line`` of a place, or an empty string."""
    return f" at {where['file']}:{where['line']}" if where else ""


def short(text: str) -> str:
    """Return the first line of a text, cut where it is very long."""
    line = (text.splitlines() or [""])[0].strip()
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def place_in(text: str) -> dict[str, Any] | None:
    """Return the place in the user's code that the frames of a printed traceback name last (a fault's: first)."""
    frames = [(file, int(line), function) for file, line, function in _FRAME.findall(text)]
    own = [frame for frame in frames if _is_users(frame[0])]
    return _as_place(own[0] if "call first" in text else own[-1]) if own else None


def _line(error: BaseException) -> str:
    """Return an exception's message in one line; of a loading process, what it raised there."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or ["no message"]
    return short(" ".join([lines[0], lines[-1]] if ORIGINAL in str(error) else lines[:1]))


def _kind(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, MemoryError) or any(word in text for word in _MEMORY) or "OutOfMemory" in text:
        return OUT_OF_MEMORY
    on_device = type(error).__name__ == "AcceleratorError" or any(word in text for word in _DEVICE)
    return CUDA if on_device and isinstance(error, (RuntimeError, AssertionError)) else USER_CODE


def _place(error: BaseException) -> dict[str, Any] | None:
    """Return the place in the user's code that an exception came from, None where none was in it."""
    if isinstance(error, SyntaxError) and error.filename:
        return {"file": error.filename, "line": error.lineno, "function": "<module>"}
    inner = place_in(str(error)) if ORIGINAL in str(error) else None
    frames = [(frame.filename, frame.lineno or 0, frame.name) for frame in traceback.extract_tb(error.__traceback__)]
    own = [frame for frame in frames if _is_users(frame[0])]
    return inner or (_as_place(own[-1]) if own else None)


def _as_place(frame: tuple[str, int, str]) -> dict[str, Any]:
    return {"file": frame[0], "line": frame[1], "function": frame[2]}


def _is_users(file: str) -> bool:
    """Return whether a file is neither ours nor Python's nor a package's; our workloads are like a user's."""
    if file.startswith("<"):
        return False
    path = Path(file).resolve()
    if path.is_relative_to(_PACKAGE):
        return path.is_relative_to(_PACKAGE / "runner" / "workloads")
    if path.parent == _PACKAGE.parent and path.name == "run_workload.py":
        return False
    installed = {sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")} | {
        sys.base_prefix + "/lib/python"
    }
    return "site-packages" not in path.parts and not any(str(path).startswith(str(each)) for each in installed)


def _last(lines: Sequence[str], word: str) -> int:
    return max((number for number, line in enumerate(lines) if word in line), default=len(lines))
