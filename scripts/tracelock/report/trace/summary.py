"""The words of a page of traces: which trace it is, the answer, what to doubt."""

from __future__ import annotations

from collections.abc import Iterator

from tracelock.diagnosis import Diagnosed, Remedy
from tracelock.report.trace.numbers import share, time
from tracelock.trace.tally import DOUBTS


def facts(found: Diagnosed) -> Iterator[str]:
    """Yield what is known of the file."""
    trace = found.trace
    if trace.torch_version:
        yield f"torch {trace.torch_version}"
    if trace.rank is not None:
        yield f"rank {trace.rank}" + (f" of {trace.world_size}" if trace.world_size else "")
    used = {gpu.id for gpu in found.gpus}
    yield from dict.fromkeys(device.name for device in trace.devices if device.id in used and device.name)
    marked = found.step.source == "ProfilerStep"
    yield f"{found.step.count} complete step{'' if found.step.count == 1 else 's'}" if marked else "no steps marked"
    yield f"{trace.events:,} events, {trace.bytes / 1e6:,.1f} MB"


def doubts(found: Diagnosed) -> Iterator[str]:
    """Yield why the figures may not be those of the whole job."""
    if doubt := DOUBTS.get(found.trace.quality):
        yield f"{doubt}."
    if found.trace.only_step:
        yield f"These are the figures of {found.trace.only_step} alone."
    if found.step.source != "ProfilerStep":
        yield "No steps are marked: all figures are over the whole trace (call prof.step() in the training loop)."
    if found.step.incomplete:
        yield f"{found.step.incomplete} of {len(found.steps)} steps are cut off by the recording and in no mean."
    yield from (f"{warning.message} ({warning.count:,})" for warning in found.trace.warnings)


def answer(found: Diagnosed) -> list[str]:
    """Return the answer in two sentences: what is slow, and what to change."""
    return [found.verdict, _next(found)]


def _next(found: Diagnosed) -> str:
    remedies = found.findings[0].remedies if found.findings else ()
    if remedies:
        return f"To try first: {remedy_text(remedies[0])} ({remedies[0].expect.rstrip('.')})."
    step = found.step
    if step.mean_us is None:
        return "No step is complete, so that no step time is known."
    busy = [gpu for gpu in found.gpus if gpu.utilization is not None]
    told = f", and {_names(busy[0].id)} runs kernels {share(busy[0].utilization)} of the time" if len(busy) == 1 else ""
    return f"A step takes {time(step.mean_us)} on average{told}."


def _names(device: int) -> str:
    return f"GPU {device}" if device >= 0 else "the GPU"


def remedy_text(remedy: Remedy) -> str:
    """Return what to change: settings as ``name=value``, or the advice for the code."""
    return ", ".join(f"{name}={_value(value)}" for name, value in remedy.settings.items()) or remedy.code


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def notes(found: Diagnosed) -> Iterator[str]:
    """Yield what is not known, and why."""
    yield from (f"{key}: {why}" for key, why in sorted(found.unknown.items()))
