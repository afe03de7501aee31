"""One run in a process of its own, and beside it a small one that outlives it: this one.

A process that is killed writes nothing. The one beside it knows the signal, keeps the log within bounds, ends what the
run has left behind, and publishes: the results, or why there are none.
"""

from __future__ import annotations

import atexit
import faulthandler
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

from tracelock.errors import EXIT_FAILED, Problem, TracelockError
from tracelock.io import write_json
from tracelock.runner import orphans, phase
from tracelock.runner.attempt import LOG, RECORD, Attempt
from tracelock.runner.ends import EndsLog, last_lines
from tracelock.runner.failure import (
    FAILURE,
    TAIL_LINES,
    TIME_LIMIT,
    Failed,
    document,
    of_ending,
    of_exception,
    problem,
    told_by_kernel,
    told_by_signal,
)
from tracelock.runner.identity import DRIVER_VARIABLE
from tracelock.runner.process import SIGNALS, Stopped, say, stoppable
from tracelock.runner.run import Request, fill, teller
from tracelock.runner.spec import Spec, read_spec
from tracelock.runner.watch import Watch, memory_kills

_LOG_LINES = 200
# What a library does at the end of the process may take this long.
_LEAVING_S = 30.0


def supervise(request: Request) -> Path:
    """Make one run and return the path of its run.json.

    Raises
    ------
    TracelockError
        For a bad spec (exit code 2), and for a failed run (exit code 1): failure.json and log.txt say why.
    Stopped
        If a signal ended it; failure.json says so.
    """
    spec = read_spec(request.spec)
    attempt = Attempt(request.output, request.token)
    try:
        outcome = _outcome(request, spec, attempt)
        if "names" in outcome:
            attempt.publish(outcome["names"])
            return request.output / RECORD
        raise _failure(outcome, request, spec, attempt)
    finally:
        attempt.close()


def _outcome(request: Request, spec: Spec, attempt: Attempt) -> dict[str, Any]:
    """Make the run in a child, and return the names of its files, or why it failed."""
    orphans.adopt_orphans()
    kills = memory_kills()
    output, says = os.pipe(), os.pipe()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    parent = os.getpid()
    with _blocked() as unblock:
        child = os.fork()
        if not child:
            _run_here(request, spec, attempt, parent, (output[1], says[1]), unblock)
        for end in (output[1], says[1]):
            os.close(end)
        log = EndsLog(attempt.work / LOG)
        watch = Watch(child, output[0], log, os.environ.get(DRIVER_VARIABLE))
        before = {number: signal.signal(number, watch.pass_on) for number in _heard()}
        unblock()
        status = watch.wait()
    orphans.end_survivors()
    watch.drain()
    log.close()
    for number, handler in before.items():
        signal.signal(number, handler)
    with os.fdopen(says[0], "rb") as stream:
        os.close(output[0])
        said = _json(stream.read())
    if "names" in said:
        return said
    if watch.overdue_s is not None:
        what = f"a step has not ended {watch.overdue_s:.0f} s after the start of the measurement"
        place = _ending(status, attempt, kills).where
        return {"failed": asdict(Failed(TIME_LIMIT, what, None, place))}
    if "failed" in said:
        failed = told_by_kernel(Failed(**said["failed"]), memory_kills() > kills)
        return said | {"failed": asdict(told_by_signal(failed, watch.asked))}
    return said or {"failed": asdict(_ending(status, attempt, kills))}


def _ending(status: int, attempt: Attempt, kills: int) -> Failed:
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    code = None if number else os.WEXITSTATUS(status)
    return of_ending(number, code, last_lines(attempt.work / LOG, _LOG_LINES), memory_kills() > kills)


def _failure(outcome: dict[str, Any], request: Request, spec: Spec, attempt: Attempt) -> BaseException:
    """Publish failure.json and the log, and return what the caller is to see."""
    failed = Failed(**outcome["failed"])
    tail = last_lines(attempt.work / LOG, TAIL_LINES)
    try:
        write_json(attempt.work / FAILURE, document(failed, spec, request.repeat, attempt.token, tail))
        attempt.publish([LOG, FAILURE])
    except TracelockError as newer:
        return newer
    except OSError as error:  # a full disk, or the folder is gone
        say(f"{request.output}: cannot be written: {error.strerror}", sys.stderr)
    if outcome.get("stopped"):
        return Stopped(int(outcome["stopped"]))
    problems = [Problem(*each) for each in outcome.get("problems", ())]
    return TracelockError(problems or problem(failed, request.output / LOG), outcome.get("exit_code", EXIT_FAILED))


def _run_here(
    request: Request, spec: Spec, attempt: Attempt, parent: int, pipes: tuple[int, int], unblock: Callable[[], None]
) -> NoReturn:
    """Make the run in this process, say how it ended, and end."""
    orphans.end_with(parent)
    orphans.bind_loading_processes()
    outside = os.fdopen(os.dup(2), "w", buffering=1)
    for number in (1, 2):
        os.dup2(pipes[0], number)
    os.close(pipes[0])
    faulthandler.enable(2)
    said: dict[str, Any] = {}
    own = os.getpid()
    try:
        with stoppable():
            unblock()
            said = {"names": fill(request, spec, attempt, teller(spec, request, outside))}
    except BaseException as error:
        traceback.print_exception(error)
        if os.getpid() != own:  # a process that the workload forked has come here, too
            os._exit(EXIT_FAILED)
        said = said_of(error)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os.write(pipes[1], json.dumps(said).encode()[:60_000])
    os.close(pipes[1])
    phase.enter(phase.current()["phase"], _LEAVING_S)
    with suppress(BaseException):
        atexit._run_exitfuncs()  # as multiprocessing does; threads that nobody ended are not waited for
    os._exit(0 if "names" in said else EXIT_FAILED)


def said_of(error: BaseException) -> dict[str, Any]:
    """Return what is passed on of an exception that ended a run."""
    said: dict[str, Any] = {"failed": asdict(of_exception(error))}
    if isinstance(error, Stopped):
        said["stopped"] = error.number
    elif isinstance(error, TracelockError) and said["failed"]["exception"] is None:
        said["problems"] = [(each.where, each.what, each.hint) for each in error.problems]
        said["exit_code"] = error.exit_code
    return said


def _heard() -> list[signal.Signals]:
    """Return the signals to end that this process does not ignore (nohup, jobs in the background)."""
    return [number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN]


@contextmanager
def _blocked() -> Iterator[Callable[[], None]]:
    """Keep signals back until each side of the fork is ready for them; yield what lets them in."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)

    def unblock() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    try:
        yield unblock
    finally:
        unblock()


def _json(data: bytes) -> dict[str, Any]:
    try:
        return dict(json.loads(data))
    except ValueError:  # it was killed before it could say anything
        return {}
