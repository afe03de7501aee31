"""One run of a study whose workload is a command: the script's own process is what is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tracelock.errors import EXIT_FAILED, Problem, TracelockError
from tracelock.runner.command.collect import RUN, SAMPLES, TRACE, Around, Process, processes
from tracelock.runner.command.factors import apart, command_with
from tracelock.runner.command.keep import keep_one
from tracelock.runner.command.launch import launch, request_for, scratch
from tracelock.runner.command.patience import LEAVING_S, Patience
from tracelock.runner.command.watching import Watcher
from tracelock.runner.failure import LimitError
from tracelock.runner.spec import Spec


def fill_command(
    spec: Spec, names: Mapping[str, Any], environment: Mapping[str, Any], work: Path, tell: Callable[[str], None]
) -> list[str]:
    """Run the command of `spec`, write its run to `work`, and return the names of the files.

    Raises
    ------
    TracelockError
        If it ends with an error, or before a step could be timed.
    """
    started = datetime.now(timezone.utc).isoformat()
    with scratch(work) as place:
        applied, told = apart(spec.settings)
        command, more = command_with(spec.command, told, spec.factors_as, place)
        watcher = Watcher(place)
        patience = Patience(place, silence_of(spec), LEAVING_S)
        code = launch(command, _request(spec, place, applied), watcher, overdue=patience, more=more)
        found = processes(place, watcher.processes)
        main = main_of(found, code, patience.ended, spec)
        ended = datetime.now(timezone.utc).isoformat()
        warnings = [
            *_without_effect(applied, main),
            *([f"the script was ended: {patience.ended}"] if patience.ended else []),
        ]
        around = Around(command, started, ended, 0 if patience.ended else code, names, warnings)
        keep_one(main, around, work, spec.limits.max_trace_mb, environment)
    tell(f"timed {main.record['timed']['steps']} steps of {main.steps}")
    return [name for name in (RUN, SAMPLES, TRACE) if (work / name).is_file()]


def _request(spec: Spec, place: Path, applied: Mapping[str, Any]) -> Any:
    profiler = spec.profiler
    return request_for(
        place,
        warmup=spec.timing.warmup_steps,
        timed=spec.timing.steps,
        active=profiler.active,
        record_shapes=profiler.record_shapes,
        profile_memory=profiler.profile_memory,
        with_stack=profiler.with_stack,
        stop_after=True,
        limit_s=spec.limits.max_duration_s,
        settings=dict(applied),
    )


def silence_of(spec: Spec) -> float | None:
    """Return the seconds without the end of a step after which a script is ended, None without a limit."""
    return None if spec.limits.max_duration_s is None else 2 * spec.limits.max_duration_s + 60


def main_of(found: list[Process], code: int, ended: str | None, spec: Spec) -> Process:
    """Return the process whose steps count: rank 0, or the one with most steps.

    Parameters
    ----------
    ended
        Why we ended the script, or None; one whose window was recorded has done its part.

    Raises
    ------
    TracelockError
        If there is none, or the script failed.
    """
    timed = [process for process in found if process.record.get("timed", {}).get("steps")]
    recorded = any(process.record["window"]["trace"] for process in timed)
    if ended is not None and not recorded:
        raise LimitError(Problem("the script", f"was ended: {ended}", "its output is in log.txt"), EXIT_FAILED)
    if code and ended is None:
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        raise TracelockError(Problem("the script", f"ended with {how}", "its output is in log.txt"), EXIT_FAILED)
    if not timed:
        raise TracelockError(_too_short(max((process.steps for process in found), default=0), spec), EXIT_FAILED)
    return timed[0]


def _too_short(steps: int, spec: Spec) -> Problem:
    if not steps:
        return Problem("the script", "made no step that was seen", "tracelock profile -- shows what it does")
    asked = (
        f"{spec.timing.warmup_steps} steps of warm-up, {spec.timing.steps} timed and {spec.profiler.active} recorded"
    )
    hint = "a longer run of it, or fewer of them: timing.warmup_steps, timing.steps (cure: --warmup, --timed)"
    return Problem("the script", f"made {steps} steps, too few for {asked}", hint)


def _without_effect(applied: Mapping[str, Any], main: Process) -> list[str]:
    changed = {change["setting"] for change in main.record["changes"]}
    now = main.record["settings"]
    idle = [name for name, value in applied.items() if name not in changed and now.get(name) != value]
    return [f"{name} found nothing to change in this script" for name in idle]
