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
    busy_device: float = _share(0.9, "a device that works nine tenths of the time has no more than a tenth to gain")
    dataloader_share: float = _share(
        0.05, "the limit of the TensorBoard plugin; below it the loop would not get measurably faster"
    )
    startup_share: float = _share(
        0.5, "the first batches of the epochs are the main part of all waiting for data, or slow loading is the cause"
    )
    collate_share: float = _share(
        0.3, "with the Python between them, operators that take a third of the loader's time are the main part of it"
    )
    collate_call_us: float = _limit(
        50, "µs", "an operator on a small tensor: mostly overhead; decoding and resizing a sample take longer"
    )
    stall_share: float = _share(
        0.05,
        "waits that cost leave the device without work when they end; most of the cost follows in the next kernels",
    )
    direct_gain: float = _share(
        0.025, "half of min_gain has to show directly, as copies that nothing hides and gaps right after them"
    )
    extra_work: float = _limit(
        1.1,
        "times",
        "a long step that calls a tenth more operators does something else than train; jitter adds no calls",
    )
    repeated_calls: float = _limit(
        50, "calls a step", "networks repeat an outermost operator a few dozen times; a loop over pieces, hundreds"
    )
    repeated_call_us: float = _limit(
        100, "µs", "a call this short is mostly overhead: dispatching an operator takes 5-40 µs"
    )
    dominant_share: float = _share(
        0.2, "one operator that is no matrix product takes a fifth of the work: the first place to look at"
    )
    dominant_calls: float = _limit(
        4, "calls a step", "few and long; an operator that comes with every layer is a part of the network"
    )
    tensor_core_speedup: float = _limit(
        16, "times", "peak of half precision over that of single precision on an A100 (8 on a V100, 15 on an H100)"
    )
    pause_share: float = _share(0.05, "as min_gain: pauses that last shorter could not be shown to matter")
    threads_share: float = _share(
        0.75, "with three quarters of the cores at work a thread more brings less than runs differ by"
    )
    throttled_share: float = _share(0.1, "clocks are limited for a tenth of the samples: not a passing moment")
    clock_loss: float = _share(0.05, "as min_gain: a clock lower by less could not be shown to matter")
    growing_steps: float = _limit(4, "steps", "a slope over fewer steps cannot be told from the growth at a start")
    growth_share: float = _share(
        0.8, "memory was kept in four of five steps: a cache or a rare event would not do that"
    )
    growth_bytes: float = _limit(
        65536, "bytes a step", "counters and logs grow by kilobytes; a tensor that is kept does so by more"
    )
    small_allocations: float = _limit(
        500, "allocations a step", "ten times what a step of a plain network makes beside its activations"
    )
    straggler_share: float = _share(0.5, "one rank causes more waiting than all the others together")
    straggler_last: float = _share(
        0.75,
        "with uneven work each of four ranks is last in a quarter of the steps; one that is last in three "
        "quarters is slow",
    )
    copies_share: float = _share(
        0.1, "layouts and gradients need some copies: in networks without a fault they take up to a twentieth of a step"
    )
    update_share: float = _share(
        0.2, "an optimizer that takes parameters one by one gets faster by a third to a half: a fifth is worth that"
    )
    exposed_communication_share: float = _share(0.1, "the limit of the TensorBoard plugin for communication")


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
