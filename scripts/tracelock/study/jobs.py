"""Jobs that a killed driver left in the queue: found by what they are, cancelled and waited for.

Snakemake forgets the jobs of a driver that was killed and submits all again: two jobs would then measure the same
batch. SLURM knows of a job its folder and its comment, in which Snakemake's executor names the rule and its wildcards;
together they say which batch of which study it is. Finished runs of such a job are kept by the job that follows it.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Collection
from pathlib import Path

from tracelock.errors import EXIT_FAILED, Problem, TracelockError

_MARK = "_wildcards_"
_CLIENT_S = 60
_END_S = 300.0


def comment(rule: str, *wildcards: str) -> str:
    """Return the comment of a job, as Snakemake's executor for SLURM makes it."""
    return f"rule_{rule}{_MARK}{'_'.join(wildcards).replace('/', '_')}"


def cancel_former(comments: Collection[str], tell: Callable[[str], None], folder: Path | None = None) -> list[str]:
    """Cancel the jobs of this user, in this working folder, that have one of `comments`, and wait for their end.

    Returns
    -------
    list of str
        The numbers of the jobs that were cancelled.

    Raises
    ------
    TracelockError
        If SLURM cannot be asked, or jobs do not end within five minutes.
    """
    if "SLURM_JOB_ID" in os.environ:  # a job of the study itself
        return []
    place = str((folder or Path.cwd()).resolve())
    jobs = _jobs(place, comments)
    if not jobs:
        return []
    numbers = ", ".join(jobs)
    tell(f"a former start of this study left jobs in the queue: {numbers}; they are cancelled, finished runs are kept")
    _ask("scancel", *jobs)
    until = time.monotonic() + _END_S
    while left := _jobs(place, comments):
        if time.monotonic() > until:
            what = f"jobs {', '.join(left)} of a former start do not end"
            raise TracelockError(Problem("SLURM", what, f"end them: scancel --full {' '.join(left)}"), EXIT_FAILED)
        time.sleep(1)
    return jobs


def _jobs(place: str, comments: Collection[str]) -> list[str]:
    """Return the numbers of the jobs that have not ended."""
    rows = (line.split("|", 2) for line in _ask("squeue", "--me", "-h", "-o", "%A|%Z|%k").splitlines() if "|" in line)
    return [number for number, where, said in rows if where == place and said in comments]


def _ask(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_CLIENT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TracelockError(Problem(command[0], f"gives no answer: {error}", "is this a login node?"), 1) from None
    if done.returncode:
        raise TracelockError(Problem(command[0], done.stderr.strip() or f"exit code {done.returncode}"), EXIT_FAILED)
    return done.stdout
