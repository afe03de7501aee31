"""A plan, for a person."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tracelock.runner.settings import STANDARD
from tracelock.study.plan import Plan
from tracelock.study.policy import policy_text
from tracelock.study.variants import Variant, variant_id

_FEW = 3


def show_plan(plan: Plan, console: Console | None = None, environments: tuple[str, ...] | None = None) -> None:
    """Print what a study measures: variants, repeats, environments, device, expected time."""
    console = console or Console(highlight=False)
    study = plan.study
    console.print(
        f"[bold]{study.name}[/bold]: {study.description}" if study.description else f"[bold]{study.name}[/bold]"
    )
    table = Table(title=None, show_edge=False, pad_edge=False)
    table.add_column("variant")
    varied = _varied(plan)
    for name in varied:
        table.add_column(name, justify="right")
    for number, variant in enumerate(plan.variants):
        mark = "baseline" if number == 0 else str(number)
        table.add_row(mark, *(_show(variant, name) for name in varied))
    if varied:
        console.print(table)
    for line in dropped_lines(plan):
        console.print(line, markup=False, style="dim")
    for line in _lines(plan, environments or plan.environments):
        console.print(line)


def dropped_lines(plan: Plan) -> list[str]:
    """Return which combinations are not measured and why: one by one where they are few, else counted by reason."""
    left_out = [each for each in plan.dropped if each.reason != "excluded by the study"]
    if len(left_out) <= _FEW:
        told = [f"{variant_id(each.overrides)}: {each.reason}" for each in left_out]
        return [
            f"not measured: {text}" + (f" ({each.why})" if each.why else "")
            for text, each in zip(told, left_out, strict=True)
        ]
    counts = Counter(each.why or each.reason for each in left_out)
    return [
        f"not measured: {len(left_out)} combinations of settings, which are equal to others or cannot be run here:",
        *(f"  {count} × {why}" for why, count in counts.most_common()),
    ]


def _lines(plan: Plan, environments: tuple[str, ...]) -> list[str]:
    study = plan.study
    product = f"{len(plan.variants)} variants × {study.repeats} repeats × {len(environments)} environment"
    each = f"{study.timing.warmup_steps} warm-up, {study.timing.steps} timed, {study.profiler.active} recorded steps"
    return [
        f"Runs         {product}{'s' if len(environments) > 1 else ''} = {len(plan.runs)}; each {each}",
        f"Environment  {', '.join(environments)}",
        f"Device       {device_text(study.device)}",
        f"Expected     {expected_text(plan)}",
        f"Traces       {policy_text(study.keep_traces, study.max_total_gb)}",
    ]


def device_text(device: str) -> str:
    """Return which device the runs will use, as far as it can be said without torch."""
    gpu = Path("/dev/nvidiactl").exists()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if device == "cpu" or (device == "auto" and not gpu):
        return f"cpu ({cores} cores)" + ("" if device == "cpu" else "; no NVIDIA GPU found")
    return "cuda" if gpu else "cuda, but no NVIDIA GPU was found here: the runs will fail"


def expected_text(plan: Plan) -> str:
    """Return the time that the runs should take, and the bound that they cannot exceed."""
    limit = plan.study.limits.max_duration_s
    most = "no bound set" if limit is None else f"at most {limit * len(plan.runs) / 60:.0f} min by its limits"
    if plan.expected_s is None:
        return f"not said by the study; {most}"
    return f"about {plan.expected_s / 60:.0f} min, one run after the other ({most})"


def _varied(plan: Plan) -> list[str]:
    """Return the names of the settings in which variants differ from one another."""
    names = list(dict.fromkeys(name for variant in plan.variants for name in variant.overrides))
    return [name for name in names if len({repr(variant.settings.get(name)) for variant in plan.variants}) > 1]


def _show(variant: Variant, name: str) -> str:
    value = variant.settings.get(name, next((item.default for item in STANDARD if item.name == name), None))
    return (
        {True: "yes", False: "no", None: "-"}.get(value, str(value)) if isinstance(value, bool | None) else str(value)
    )
