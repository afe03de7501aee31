"""A study file as typed values. Only what Snakemake itself brings is needed here: the driver plans with it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tracelock.runner.protocol import SECTIONS, Limits, Profiling, Timing

Settings: TypeAlias = dict[str, Any]

DEFAULT_ENVIRONMENT = "default"


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
    timing: Timing = field(default_factory=Timing)
    profiler: Profiling = field(default_factory=Profiling)
    limits: Limits = field(default_factory=Limits)
    precision: str | None = None  # "3 %": how narrow the interval of each ratio is to become
    max_repeats: int = 10  # of a variant, where `precision` asks for more
    repeat_disturbed: bool = True
    keep_traces: Literal["all", "best", "failed", "none"] = "all"
    max_total_gb: float | None = None  # of all traces that are kept, in GB of 10^9 bytes
    stacks: bool = True  # one recording more with Python stacks, where the main finding has no line of the user's
    expected_run_s: float | None = None
    thresholds: Settings = field(default_factory=dict)
    remedies: Remedies = Remedies()
    allow_unlocked: bool = False
    cluster: Settings = field(default_factory=dict)


def study_from(file: Path, value: dict[str, Any]) -> Study:
    """Return the study of a mapping whose shape has been checked."""
    keys = dict(value)
    workload = keys.pop("workload")
    sections = {**SECTIONS, "remedies": Remedies}
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
