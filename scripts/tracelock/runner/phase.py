"""Where a run stands, in a page of memory that the process beside it reads, also when the run was killed."""

from __future__ import annotations

import json
import mmap
import time
from typing import Any

STARTING, WAITING, IMPORTING, BUILDING = "starting", "waiting for a device", "importing torch", "building the workload"
MEASURING, WRITING = "measuring", "writing"
# What goes wrong in these goes wrong in every run of the same code.
BEFORE_STEPS = (STARTING, IMPORTING, BUILDING)

_PAGE = mmap.mmap(-1, 4096)


def enter(phase: str, limit_s: float | None = None) -> None:
    """Say that the run is in `phase` from now on, for at most `limit_s` seconds."""
    text = json.dumps({"phase": phase, "since": time.monotonic(), "limit_s": limit_s})
    _PAGE[: len(text) + 1] = text.encode() + b"\0"


def current() -> dict[str, Any]:
    """Return ``phase``, the monotonic time of its beginning, and its limit in seconds."""
    try:
        return dict(json.loads(_PAGE[:].partition(b"\0")[0]))
    except ValueError:  # not one yet, or one is being written
        return {"phase": STARTING, "since": time.monotonic(), "limit_s": None}
