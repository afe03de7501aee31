"""How a run goes: what is timed, what is recorded, what bounds it. Declared here once.

A study file and `spec.json` have these three sections; the types, the defaults, the checks and the pages are made from
this file, and the study's schema is compared with it by a test. Standard library only: it is read before torch is
imported.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from tracelock.runner.settings import Setting


def _key(kind: str, default: Any, meaning: str, minimum: float | None = None, optional: bool = False) -> Any:
    """Return a field of a section, described as a `Setting` is."""
    said = {"kind": kind, "meaning": meaning, "minimum": minimum, "optional": optional}
    return field(default=default, metadata=said)


@dataclass(frozen=True)
class Timing:
    """The part of a run that is timed, without the profiler."""

    warmup_steps: int = _key("int", 3, "Steps before anything is timed.", 0)
    steps: int = _key("int", 20, "Timed steps without the profiler.", 1)


@dataclass(frozen=True)
class Profiling:
    """The part of a run that is recorded: the arguments of torch.profiler.schedule and of torch.profiler.profile."""

    wait: int = _key("int", 1, "Steps that the schedule skips.", 0)
    warmup: int = _key("int", 1, "Steps with the profiler on, thrown away.", 0)
    active: int = _key("int", 3, "Recorded steps.", 1)
    repeat: int = _key("int", 1, "Cycles of the schedule; each gives a trace, the first is analysed.", 1)
    record_shapes: bool = _key("bool", True, "Record the shapes of operator inputs.")
    profile_memory: bool = _key("bool", True, "Record allocations.")
    with_stack: bool = _key("bool", False, "Record Python stacks.")

    @property
    def cycle(self) -> int:
        """Steps of one cycle."""
        return self.wait + self.warmup + self.active

    @property
    def steps(self) -> int:
        """Steps of the whole window."""
        return self.cycle * self.repeat


@dataclass(frozen=True)
class Limits:
    """Bounds of one run; a bound that cut a run is named in its results. None where nothing does."""

    max_duration_s: float | None = _key("float", 300.0, "Seconds after which a run stops measuring.", 0, optional=True)
    max_steps: int | None = _key("int", 100_000, "Steps after which a run stops measuring.", 1, optional=True)
    max_trace_mb: float | None = _key(
        "float", 200.0, "Largest trace file that is kept, in MB of 10^6 bytes.", 0, optional=True
    )


SECTIONS: dict[str, type[Timing | Profiling | Limits]] = {"timing": Timing, "profiler": Profiling, "limits": Limits}


def settings_of(section: str) -> tuple[Setting, ...]:
    """Return the keys of a section with their checks."""
    defaults = SECTIONS[section]()
    return tuple(Setting(key.name, default=getattr(defaults, key.name), **key.metadata) for key in fields(defaults))
