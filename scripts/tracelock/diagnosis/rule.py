"""What a rule is, what it returns, and how the rules are found."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tracelock.diagnosis import rules
from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.model import Evidence, Remedy, Severity


@dataclass(frozen=True)
class Cause:
    """What a rule found; `diagnose` makes a finding of it, unless another cause explains it.

    Parameters
    ----------
    removal
        What removing the cause takes out of a step at most; the bound of the gain follows from it. None for a cause
        that costs no time now (memory that is never given back).
    share
        The part of the step that the cause occupies, 0..1, None where that is no time.
    gain
        The bound itself, where a rule knows it otherwise than from `removal`.
    likely
        What removing the cause is expected to take out of a step, where that is less than `removal`; findings are
        ordered by the gain that follows from it. None: as much as `removal`.
    estimate
        That gain itself, 0..1, where a rule knows it otherwise than from `likely`.
    """

    title: str
    removal: Removal | None
    share: float | None
    evidence: tuple[Evidence, ...]
    remedies: tuple[Remedy, ...]
    gain: float | None = None
    likely: Removal | None = None
    estimate: float | None = None
    confidence: Literal["low", "medium", "high"] | None = None  # None: as the trace allows
    severity: Severity | None = None  # None: by the gain
    explains: tuple[str, ...] = ()  # codes of causes that are this one seen from elsewhere, as the figures say here


Examine: TypeAlias = Callable[[Case], Cause | None]


@dataclass(frozen=True)
class Rule:
    """One cause of lost time.

    Parameters
    ----------
    code
        The code of its findings; the file is named so, with underscores.
    needs
        What must be known for the rule to speak, for a person.
    speaks
        When it speaks, for a person, naming its thresholds.
    remedies
        What it advises, for a person: settings by their names, and what needs code.
    thresholds
        The names of the limits that it uses.
    examine
        Returns a cause, or None where it is absent or cannot be known.
    explains
        Codes of causes whose symptoms this cause makes whatever the figures say: they are not reported beside it.
    always
        Whether it is worth a line even where it costs no time now.
    stacks
        Whether Python frames name the user's line that it comes from.
    """

    code: str
    needs: str
    speaks: str
    remedies: str
    thresholds: tuple[str, ...]
    examine: Examine
    explains: tuple[str, ...] = ()
    always: bool = False
    stacks: bool = False


@functools.cache
def all_rules() -> tuple[Rule, ...]:
    """Return every rule of the folder ``rules``, by file name."""
    names = sorted(module.name for module in pkgutil.iter_modules(rules.__path__))
    return tuple(importlib.import_module(f"{rules.__name__}.{name}").RULE for name in names)
