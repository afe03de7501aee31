"""The driver says in words why the batch system ended a job."""

from __future__ import annotations

import pytest

from tracelock.study.job_news import job_failures


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("TIMEOUT", "job 17 failed (TIMEOUT: it was over its time limit)"),
        ("OUT_OF_MEMORY", "job 17 failed (OUT_OF_MEMORY: it was out of memory)"),
        ("FAILED", "job 17 failed (FAILED)"),
    ],
)
def test_a_failed_job_is_told_with_its_cause(status: str, said: str) -> None:
    lines = ["Job 3 has been submitted", f"SLURM-job '17' failed, SLURM status is: '{status}'. Reason: Unknown."]
    (line,) = job_failures(lines)
    assert line.startswith(said)


def test_other_lines_say_nothing() -> None:
    assert list(job_failures(["SLURM-job '17' is running", "failed"])) == []
