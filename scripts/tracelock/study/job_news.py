"""What the batch system says of jobs that failed, from Snakemake's log: why, in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_FAILED = re.compile(r"SLURM-job '(\d+)' failed, SLURM status is: '(\w+)'")
_WORDS = {
    "TIMEOUT": "it was over its time limit",
    "DEADLINE": "it was over its deadline",
    "OUT_OF_MEMORY": "it was out of memory",
    "CANCELLED": "it was cancelled, by somebody or for its use of memory",
    "NODE_FAIL": "its node failed",
    "PREEMPTED": "another job took its place",
}


def job_failures(lines: Iterable[str]) -> Iterator[str]:
    """Yield a line for each job that Snakemake reports as failed."""
    for line in lines:
        if found := _FAILED.search(line):
            job, status = found.groups()
            why = f": {_WORDS[status]}" if status in _WORDS else ""
            yield f"job {job} failed ({status}{why}); a job is tried three times, with more memory and time each time"
