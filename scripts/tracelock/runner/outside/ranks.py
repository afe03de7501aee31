"""Ranks of one job: all time and record the same steps, or their traces cannot be compared.

Rank 0 decides when the warm-up is over and writes the schedule into the folder that all write to; the others read it
between their steps. Collectives hold ranks within a step of each other, and the schedule begins two steps later.
"""

from __future__ import annotations

import json
import os
from typing import Any

from .schedule import WARMUP_MOST, Schedule, plan

_FILE = "schedule.json"


def rank() -> int:
    """Return this process's rank: torch.distributed's where it runs, else the launcher's, else 0."""
    distributed = _distributed()
    return int(distributed.get_rank()) if distributed is not None else _number("RANK", 0)


def world_size() -> int:
    """Return how many processes train together."""
    distributed = _distributed()
    return int(distributed.get_world_size()) if distributed is not None else _number("WORLD_SIZE", 1)


def local_rank() -> int | None:
    """Return the launcher's number of this process on its machine, or None."""
    return _number("LOCAL_RANK", -1) if "LOCAL_RANK" in os.environ else None


def several() -> bool:
    """Return whether other processes make the same steps."""
    return world_size() > 1


def leads() -> bool:
    """Return whether this process decides for the others."""
    return rank() == 0


def announce(folder: str, schedule: Schedule) -> None:
    """Let the other ranks know."""
    path = os.path.join(folder, _FILE)
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as stream:
        json.dump(schedule.plain(), stream)
    os.replace(temporary, path)


def agreed(folder: str, done: int) -> Schedule | None:
    """Return rank 0's schedule once there is one; without a folder in common, the rank's own after the longest wait."""
    try:
        with open(os.path.join(folder, _FILE), encoding="utf-8") as stream:
            return Schedule(**json.load(stream))
    except (OSError, ValueError, TypeError):
        return plan(done, 1.0, None, None, None) if done > WARMUP_MOST + 10 and not leads() else None


def _distributed() -> Any:
    from torch import distributed

    return distributed if distributed.is_available() and distributed.is_initialized() else None


def _number(name: str, default: int) -> int:
    try:
        return int(os.environ.get(name, default))
    except ValueError:
        return default
