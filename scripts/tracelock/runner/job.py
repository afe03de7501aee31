"""What a batch system says of the job that a process belongs to."""

from __future__ import annotations

import os
from typing import Any

SHARED_NODE = "TRACELOCK_SHARED_NODE"  # set where other jobs may use the node beside the measurements
_NAMES = {"id": "SLURM_JOB_ID", "node": "SLURMD_NODENAME", "restarts": "SLURM_RESTART_COUNT"}


def job_facts() -> dict[str, Any] | None:
    """Return the batch system's name, the job's number and its node; None outside of a job."""
    facts = {key: os.environ[name] for key, name in _NAMES.items() if os.environ.get(name)}
    return {"system": "slurm", **facts} if "id" in facts else None
