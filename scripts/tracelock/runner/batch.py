"""A batch of runs in one job of a batch system: one after the other, each in a process of its own.

Runs inside the environment that is measured. A run that is there already is kept; one that fails is left to the log
and the rest goes on. A batch is claimed by its newest job: a job that a dead node or a killed driver left behind
sees before its next run that the batch is no longer its own, and ends.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from tracelock.errors import EXIT_FAILED, Problem, TracelockError
from tracelock.io import read_json, schema, write_json, write_text
from tracelock.runner.attempt import RECORD
from tracelock.runner.failure import EMPTY_LOADER, EXIT, FAILURE, USER_CODE
from tracelock.runner.job import job_facts
from tracelock.runner.orphans import end_with
from tracelock.runner.process import Stopped, stoppable

# Trying again changes nothing.
_CERTAIN = (USER_CODE, EXIT, EMPTY_LOADER)
_END_S = 20.0


@dataclass(frozen=True)
class Batch:
    """What a job is asked to do.

    Parameters
    ----------
    plan
        The plan.json that the runs stand in, of the study or of a round of remedies.
    environment, orders
        Which of them: those of one environment, from the first to the last place in the plan's order.
    check
        The gate's check.json of the environment.
    program
        ``run_workload.py``, which makes one run.
    code
        Digest of the programs; a run made by others is made again.
    attempt
        Counts the tries of the job from 1 on.
    """

    plan: Path
    environment: str
    orders: tuple[int, int] | None
    check: Path
    program: Path
    code: str
    attempt: int = 1


@dataclass(frozen=True)
class Done:
    """What became of one run of the batch."""

    variant: str
    repeat: int
    outcome: Literal["made", "kept", "failed", "not tried again"]
    exit_code: int | None = None


def work_through(batch: Batch, output: Path, tell: Callable[[str], None]) -> list[Done]:
    """Make every run of the batch that is not there, and write what became of each to `output`.

    Raises
    ------
    TracelockError
        If runs are missing at the end (exit code 1), or a newer job has taken the batch over.
    Stopped
        If a signal ended it; finished runs stay.
    """
    runs = list(_runs(batch))
    claim = _claim(output)
    done: list[Done] = []
    with stoppable():
        for number, run in enumerate(runs, 1):
            claim()
            done.append(_make(batch, run))
            tell(f"run {number}/{len(runs)} {done[-1].outcome}: {run['variant']} ({run['repeat']})")
        claim()
    missing = [one for one in done if one.outcome not in ("made", "kept")]
    if missing:
        names = ", ".join(f"{one.variant} ({one.repeat})" for one in missing[:5])
        raise TracelockError(Problem("the batch", f"{len(missing)} of {len(runs)} runs failed: {names}"), EXIT_FAILED)
    facts = {"attempt": batch.attempt, "job": job_facts(), "runs": [asdict(one) for one in done]}
    write_json(output, {"schema": schema("batch"), "environment": batch.environment, **facts})
    return done


def _runs(batch: Batch) -> Iterator[dict[str, Any]]:
    """Yield the plan's runs that belong to the batch, in the plan's order, each with the digest of its variant."""
    plan = read_json(batch.plan, "plan")
    digests = {variant["id"]: variant["digest"] for variant in plan["variants"]}
    first, last = batch.orders or (0, len(plan["runs"]))
    for run in sorted(plan["runs"], key=lambda run: int(run["order"])):
        if run["environment"] == batch.environment and first <= run["order"] <= last:
            yield {**run, "digest": digests[run["variant"]]}


def _claim(output: Path) -> Callable[[], None]:
    """Enter this job as the batch's newest, and return a check that it still is."""
    file = output.with_name(f".{output.name}.claim")
    token = f"{os.environ.get('SLURM_JOB_ID', 'local')}-{os.getpid()}-{os.urandom(4).hex()}"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_text(file, token)

    def check() -> None:
        if file.read_text(encoding="utf-8") != token:
            what = "a newer job has taken this batch over; the runs that this one made are kept"
            raise TracelockError(Problem(str(output), what), EXIT_FAILED)

    return check


def _make(batch: Batch, run: dict[str, Any]) -> Done:
    folder = batch.plan.parent / "runs" / run["environment"] / run["variant"] / str(run["repeat"])
    place = (run["variant"], int(run["repeat"]))
    if _is_there(folder / RECORD, run["digest"], batch.code):
        return Done(*place, "kept")
    if batch.attempt > 1 and _failed_for_certain(folder):
        return Done(*place, "not tried again")
    code = _run(
        [
            *(sys.executable, str(batch.program), "--spec", str(folder.parent / "spec.json")),
            *("--repeat", str(run["repeat"]), "--output", str(folder), "--check", str(batch.check)),
            *("--token", f"{batch.code}.{os.environ.get('SLURM_JOB_ID', 'local')}.{batch.attempt}"),
        ]
    )
    return Done(*place, "made" if code == 0 else "failed", code)


def _is_there(record: Path, digest: str, code: str) -> bool:
    """Return whether a run was made with these settings by these programs."""
    try:
        document = read_json(record, "run")
    except TracelockError:
        return False
    return document.get("digest") == digest and str(document.get("token")).startswith(f"{code}.")


def _failed_for_certain(folder: Path) -> bool:
    try:
        return json.loads((folder / FAILURE).read_text(encoding="utf-8")).get("cause") in _CERTAIN
    except (OSError, ValueError, AttributeError):
        return False


def _run(command: Sequence[str]) -> int:
    """Return a program's exit code; a signal to this process ends the program, and so does its own end.

    A batch system that kills a job may find this process after it has started the next run: that would live on, beside
    the job that makes it again.
    """
    parent = os.getpid()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=lambda: end_with(parent, signal.SIGTERM))
    try:
        return process.wait()
    except Stopped:
        process.terminate()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
        raise
