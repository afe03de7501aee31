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
from typing import Any

from tracelock.errors import EXIT_FAILED, Problem, TracelockError
from tracelock.io import write_json
from tracelock.runner.attempt import LOG, RECORD, Attempt
from tracelock.runner.environment import environment_facts
from tracelock.runner.gpu_probes import gpu_probe
from tracelock.runner.lease import Lease, lease_device
from tracelock.runner.probes import Probe, host_probe
from tracelock.runner.process import Stopped, output_to, set_thread_variables, stoppable, usable_cores
from tracelock.runner.spec import Spec, read_spec

# How torch marks the traceback of a loading process.
_ORIGINAL = "Original Traceback"


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
    """Make one run and return the path of its run.json.

    Raises
    ------
    TracelockError
        For a bad spec (exit code 2) and for a failed run (exit code 1, the traceback is in log.txt).
    Stopped
        If a signal ended it. Nothing is left but log.txt.
    """
    spec = read_spec(request.spec)
    environment = environment_facts(request.check)
    with stoppable(), ExitStack() as stack:
        attempt = Attempt(request.output, request.token)
        stack.callback(attempt.close)
        outside = stack.enter_context(output_to(attempt.work / LOG))

        def tell(message: str) -> None:
            """Say something to the caller and to the log."""
            print(f"{datetime.now(timezone.utc):%H:%M:%S} {message}", flush=True)
            print(f"{spec.variant} [{request.repeat}]: {message}", file=outside)

        try:
            attempt.publish(_run(request, spec, environment, attempt, tell))
        except BaseException as error:
            raise _failed(error, attempt) from error
    return request.output / RECORD


def _failed(error: BaseException, attempt: Attempt) -> BaseException:
    """Write `error` to the log, publish the log alone, and return what the caller is to see."""
    traceback.print_exception(error)
    # What a loading process raised comes as the same class with a traceback for its text.
    if not isinstance(error, (TracelockError, Stopped)) or _ORIGINAL in str(error):
        error = TracelockError(_problem(error, attempt), EXIT_FAILED)
    with suppress(TracelockError, OSError):  # a newer attempt owns the folder, or it is gone
        attempt.publish([LOG])
    return error


def _problem(error: BaseException, attempt: Attempt) -> Problem:
    """Return one line for an exception of the workload."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or ["no message"]
    what = " ".join([lines[0], lines[-1]] if _ORIGINAL in str(error) else lines[:1])
    return Problem("the run failed", f"{type(error).__name__}: {what}", f"traceback in {attempt.folder / LOG}")


def _run(
    request: Request, spec: Spec, environment: dict[str, Any], attempt: Attempt, tell: Callable[[str], None]
) -> list[str]:
    """Measure, write everything to the attempt's folder, and return the names of the files."""
    threads = spec.settings.get("threads") or usable_cores()
    set_thread_variables(threads)
    with _device(spec.device, tell) as (device, lease, warnings):
        started = datetime.now(timezone.utc)
        import torch

        from tracelock.runner.measure import measure, prepare
        from tracelock.runner.record import SAMPLES, Circumstances, record

        prepared = prepare(spec, device, threads)
        measured = measure(spec, prepared.workload, device, _probes(lease), attempt.work, tell)
        ended = datetime.now(timezone.utc)
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


@contextmanager
def _device(asked: str, tell: Callable[[str], None]) -> Iterator[tuple[str, Lease, list[str]]]:
    """Yield torch's name of a device, its lease, and warnings; a GPU that torch cannot use is given back."""
    lease, warnings = lease_device(asked, tell), []
    try:
        from tracelock.runner.measure import choose_device

        device = choose_device(asked)
        if lease.gpu and device == "cpu":
            warnings.append(f"torch cannot use the GPU {lease.gpu.name or lease.gpu.uuid}; the run is on the CPU")
            lease.release()
            lease = lease_device("cpu", tell)
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
