"""One run, from spec.json to run.json; torch is imported only when the device is ours."""

from __future__ import annotations

import os
import shutil
import socket
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TextIO

from tracelock.errors import EXIT_FAILED, TracelockError
from tracelock.io import write_json
from tracelock.runner import phase
from tracelock.runner.attempt import LOG, RECORD, Attempt
from tracelock.runner.ends import last_lines
from tracelock.runner.environment import environment_facts
from tracelock.runner.failure import FAILURE, TAIL_LINES, document, of_exception, problem
from tracelock.runner.gpu_probes import gpu_probe
from tracelock.runner.lease import Lease, lease_device
from tracelock.runner.probes import Probe, host_probe
from tracelock.runner.process import (
    Stopped,
    output_to,
    restore_thread_variables,
    say,
    set_thread_variables,
    stoppable,
    usable_cores,
)
from tracelock.runner.spec import Spec, read_spec

# Names a file that gets a line whenever a run waits; whoever started the runs shows them.
NOTICES_VARIABLE = "TRACELOCK_NOTICES"


@dataclass(frozen=True)
class Request:
    """What a caller asks for.

    Parameters
    ----------
    spec
        The file spec.json.
    repeat
        Number of the repeat, from 0 or 1 on as the caller counts.
    output
        Folder for run.json, samples.csv, trace.json.gz and log.txt.
    token
        Name of this attempt, or None for a random one.
    tensorboard
        Whether the trace also gets the name by which TensorBoard knows traces.
    check
        The gate's check.json: the run refuses an environment that has changed since.
    """

    spec: Path
    repeat: int
    output: Path
    token: str | None = None
    tensorboard: bool = False
    check: Path | None = None


def run(request: Request) -> Path:
    """Make one run in this process and return the path of its run.json; `supervise` makes it in one of its own.

    Raises
    ------
    TracelockError
        For a bad spec (exit code 2) and for a failed run (exit code 1, the traceback is in log.txt).
    Stopped
        If a signal ended it. Nothing is left but log.txt and failure.json.
    """
    spec = read_spec(request.spec)
    with stoppable(), ExitStack() as stack:
        attempt = Attempt(request.output, request.token)
        stack.callback(attempt.close)
        outside = stack.enter_context(output_to(attempt.work / LOG))
        try:
            attempt.publish(fill(request, spec, attempt, teller(spec, request, outside)))
        except BaseException as error:
            raise _failed(error, request, spec, attempt) from error
    return request.output / RECORD


def teller(spec: Spec, request: Request, outside: TextIO) -> Callable[[str], None]:
    """Return a function that says something to the caller, to the log and to whoever shows notices."""

    def tell(message: str) -> None:
        print(f"{datetime.now(timezone.utc):%H:%M:%S} {message}", flush=True)
        line = f"{spec.variant} [{request.repeat}]: {message}"
        say(line, outside)
        notices = os.environ.get(NOTICES_VARIABLE)
        if notices and message.startswith("waiting"):
            with suppress(OSError), Path(notices).open("a", encoding="utf-8") as stream:
                stream.write(f"{line}\n")

    return tell


def _failed(error: BaseException, request: Request, spec: Spec, attempt: Attempt) -> BaseException:
    """Write `error` to the log, publish why the run failed, and return what the caller is to see."""
    traceback.print_exception(error)
    failed = of_exception(error)
    with suppress(TracelockError, OSError):  # a newer attempt owns the folder, or it is gone
        tail = last_lines(attempt.work / LOG, TAIL_LINES)
        write_json(attempt.work / FAILURE, document(failed, spec, request.repeat, attempt.token, tail))
        attempt.publish([LOG, FAILURE])
    if failed.exception is None and isinstance(error, (TracelockError, Stopped)):
        return error
    return TracelockError(problem(failed, attempt.folder / LOG), EXIT_FAILED)


def fill(request: Request, spec: Spec, attempt: Attempt, tell: Callable[[str], None]) -> list[str]:
    """Measure, write everything to the attempt's folder, and return the names of the files."""
    phase.enter(phase.STARTING)
    environment = environment_facts(request.check)
    if spec.command:
        return _fill_command(request, spec, attempt, environment, tell)
    threads = spec.settings.get("threads") or usable_cores()
    set_thread_variables(threads)
    with _device(spec, request.repeat, tell) as (device, lease, warnings):
        started = datetime.now(timezone.utc)
        import torch

        from tracelock.runner.measure import measure, prepare
        from tracelock.runner.record import SAMPLES, Circumstances, record

        phase.enter(phase.BUILDING)
        prepared = prepare(spec, device, threads)
        measured = measure(spec, prepared.workload, device, _probes(lease), attempt.work, tell)
        ended = datetime.now(timezone.utc)
        phase.enter(phase.WRITING)
        measured.sampler.write(attempt.work / SAMPLES)
        around = Circumstances(
            spec,
            request.repeat,
            attempt.token,
            started,
            ended,
            device,
            lease.gpu,
            threads,
            torch.__version__,
            environment,
        )
        document = record(around, prepared, measured, warnings)
    names = [RECORD, SAMPLES, LOG, *document["profiled"]["traces"]]
    if request.tensorboard and document["profiled"]["trace"]:
        names.append(_standard_name(attempt.work, document["profiled"]["trace"]))
        document["profiled"]["tensorboard_trace"] = names[-1]
    write_json(attempt.work / RECORD, document)
    return names


def _fill_command(
    request: Request, spec: Spec, attempt: Attempt, environment: dict[str, Any], tell: Callable[[str], None]
) -> list[str]:
    """As `fill`, for a workload that is a command; its processes find their device as they do without us."""
    from tracelock.runner.command.study_run import fill_command

    restore_thread_variables()
    if spec.settings.get("threads"):
        set_thread_variables(spec.settings["threads"])
    keys = ("experiment", "environment", "variant", "digest", "spec_digest", "seed")
    names = {**{key: getattr(spec, key) for key in keys}, "repeat": request.repeat, "token": attempt.token}
    what = {"study": spec.experiment, "variant": spec.variant, "repeat": request.repeat}
    phase.enter(phase.WAITING)
    lease = lease_device(spec.device, tell, what, spec.exclusive)
    try:
        phase.enter(phase.MEASURING)
        return [*fill_command(spec, names, environment, attempt.work, tell), LOG]
    finally:
        lease.release()


@contextmanager
def _device(spec: Spec, repeat: int, tell: Callable[[str], None]) -> Iterator[tuple[str, Lease, list[str]]]:
    """Yield torch's name of a device, its lease, and warnings; a GPU that torch cannot use is given back."""
    asked, what = spec.device, {"study": spec.experiment, "variant": spec.variant, "repeat": repeat}
    phase.enter(phase.WAITING)
    lease, warnings = lease_device(asked, tell, what, spec.exclusive), []
    try:
        phase.enter(phase.IMPORTING)
        from tracelock.runner.measure import choose_device

        device = choose_device(asked)
        if lease.gpu and device == "cpu":
            warnings.append(f"torch cannot use the GPU {lease.gpu.name or lease.gpu.uuid}; the run is on the CPU")
            lease.release()
            lease = lease_device("cpu", tell, what, spec.exclusive)
        yield device, lease, warnings
    finally:
        lease.release()


def _probes(lease: Lease) -> list[Probe]:
    """Return what is sampled: the machine, and the GPU where one is leased."""
    gpu = gpu_probe(lease.gpu) if lease.gpu else None
    return [host_probe(), *([gpu] if gpu else [])]


def _standard_name(folder: Path, trace: str) -> str:
    """Give the trace a second name, the one of torch.profiler.tensorboard_trace_handler, and return it."""
    name = f"{socket.gethostname()}_{os.getpid()}.{time.time_ns()}.pt.trace.json.gz"
    try:
        os.link(folder / trace, folder / name)
    except OSError:  # a file system without hard links
        shutil.copyfile(folder / trace, folder / name)
    return name
