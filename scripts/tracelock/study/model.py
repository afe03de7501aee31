"""A study file as typed values. Only what Snakemake itself brings is needed here: the driver plans with it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

Settings: TypeAlias = dict[str, Any]

DEFAULT_ENVIRONMENT = "default"


@dataclass(frozen=True)
class Timing:
    """The part of a run that is timed, without the profiler."""

    warmup_steps: int = 3
    steps: int = 20


@dataclass(frozen=True)
class Profiler:
    """The part of a run that is recorded: torch.profiler.schedule and what is recorded."""

    wait: int = 1
    warmup: int = 1
    active: int = 3
    repeat: int = 1
    record_shapes: bool = True
    profile_memory: bool = True
    with_stack: bool = False


@dataclass(frozen=True)
class Limits:
    """Bounds of one run; a bound that cut a run is named in its results."""

    max_duration_s: float = 300.0
    max_steps: int = 100_000
    max_trace_mb: float = 200.0


@dataclass(frozen=True)
class Remedies:
    """Whether, and how long, what the diagnosis proposes is run and measured."""

    test: bool = False
    max_rounds: int = 2
    max_runs: int = 12
    budget_minutes: float = 30.0


@dataclass(frozen=True)
class Study:
    """One study file, checked."""

    name: str
    file: Path
    workload: str
    baseline: Settings
    description: str = ""
    workload_settings: Settings = field(default_factory=dict)
    command: tuple[str, ...] = ()  # in place of a function: a script as it is
    factors_as: str = "flags"
    environments: tuple[str, ...] = (DEFAULT_ENVIRONMENT,)
    device: Literal["auto", "cpu", "cuda"] = "auto"
    exclusive: Literal["device", "machine"] = "device"
    threads: int | None = None
    seed: int = 1
    repeats: int = 3
    factors: dict[str, list[Any]] = field(default_factory=dict)
    variants: tuple[Settings, ...] = ()
    exclude: tuple[Settings, ...] = ()
    timing: Timing = Timing()
    profiler: Profiler = Profiler()
    limits: Limits = Limits()
    precision: str | None = None  # "3 %": how narrow the interval of each ratio is to become
    max_repeats: int = 10  # of a variant, where `precision` asks for more
    repeat_disturbed: bool = True
    expected_run_s: float | None = None
    thresholds: Settings = field(default_factory=dict)
    remedies: Remedies = Remedies()
    allow_unlocked: bool = False
    cluster: Settings = field(default_factory=dict)


def study_from(file: Path, value: dict[str, Any]) -> Study:
    """Return the study of a mapping whose shape has been checked."""
    keys = dict(value)
    workload = keys.pop("workload")
    sections = {"timing": Timing, "profiler": Profiler, "limits": Limits, "remedies": Remedies}
    for name, kind in sections.items():
        if name in keys:
            keys[name] = kind(**keys[name])
    for name in ("environments", "variants", "exclude"):
        if name in keys:
            keys[name] = tuple(keys[name])
    command = tuple(map(str, workload.get("command", ())))
    return Study(
        file=file,
        workload=shlex.join(command) if command else workload["build"],
        workload_settings=dict(workload.get("settings", {})),
        command=command,
        factors_as=workload.get("factors_as", "flags"),
        **keys,
    )
