"""What a rule is, and how the rules are found."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from tracelock.diagnosis import rules
from tracelock.diagnosis.case import Case
from tracelock.diagnosis.model import Finding

Examine: TypeAlias = Callable[[Case], Finding | None]


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
    thresholds
        The names of the limits that it uses.
    examine
        Returns a finding, or None where the cause is absent or cannot be known.
    explains
        Codes of causes whose symptoms this cause makes: they are not reported beside it.
    """

    code: str
    needs: str
    speaks: str
    thresholds: tuple[str, ...]
    examine: Examine
    explains: tuple[str, ...] = ()


@functools.cache
def all_rules() -> tuple[Rule, ...]:
    """Return every rule of the folder ``rules``, by file name."""
    names = sorted(module.name for module in pkgutil.iter_modules(rules.__path__))
    return tuple(importlib.import_module(f"{rules.__name__}.{name}").RULE for name in names)
