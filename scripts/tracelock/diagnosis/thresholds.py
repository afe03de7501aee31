"""When a rule speaks: every limit with its unit and the reason for its default, changeable from a study.

A study or a file gives `thresholds:` as a mapping from the names below to numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any

from tracelock.errors import Problem, TracelockError, nearest


def _limit(default: float, unit: str, reason: str, high: float = math.inf) -> Any:
    """Return a dataclass field with its unit, the reason for its default, and the range 0..`high`."""
    return field(default=default, metadata={"unit": unit, "reason": reason, "high": high})


def _share(default: float, reason: str) -> Any:
    """Return a limit that is a part of a whole, 0..1."""
    return _limit(default, "share", reason, high=1.0)


@dataclass(frozen=True)
class Thresholds:
    """Limits of all rules; the metadata of each field holds ``unit``, ``reason`` and ``high``."""

    min_gain: float = _share(
        0.05, "runs of one variant differ by 2-5 % on a quiet machine: a smaller gain could not be shown afterwards"
    )
    critical_gain: float = _share(0.2, "a fifth of the step: worth stopping the job for")
    confident_steps: float = _limit(3, "steps", "fewer complete steps cannot show that something recurs")
    dataloader_share: float = _share(
        0.05, "the limit of the TensorBoard plugin; below it the loop would not get measurably faster"
    )
    busy_device: float = _share(0.9, "a device that works nine tenths of the time has no more than a tenth to gain")


def limits() -> tuple[Field[Any], ...]:
    """Return all limits, as dataclass fields with their metadata."""
    return fields(Thresholds)


def read_thresholds(values: Mapping[str, Any], where: str = "thresholds") -> Thresholds:
    """Return the defaults with `values` in place of some of them.

    Raises
    ------
    TracelockError
        Naming every unknown key and every value out of range at once, as ``where.key``.
    """
    known = {limit.name: limit for limit in limits()}
    problems = [problem for key, value in values.items() if (problem := _problem(where, str(key), value, known))]
    if problems:
        raise TracelockError(problems)
    return Thresholds(**{str(key): float(value) for key, value in values.items()})


def _problem(where: str, key: str, value: Any, known: Mapping[str, Field[Any]]) -> Problem | None:
    """Return what is wrong with one entry, or None."""
    place = f"{where}.{key}"
    if key not in known:
        hint = nearest(key, list(known)) or f"known: {', '.join(known)}"
        return Problem(place, "is no threshold", hint)
    high = known[key].metadata["high"]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and math.isfinite(value) and 0 <= value <= high:
        return None
    wanted = f"a number from 0 to {high:g}" if math.isfinite(high) else "a number from 0"
    return Problem(place, f"is {value!r}, expected {wanted} ({known[key].metadata['unit']})")
