"""The figures of a single trace for papers and slides: bars with their names above them, one sample, no interval."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from tracelock.analysis.parts import IDLE, STEP
from tracelock.diagnosis import Diagnosed
from tracelock.io import write_bytes, write_text
from tracelock.report import style
from tracelock.report.export import CAPTIONS, SIZES
from tracelock.report.figures import save
from tracelock.report.figures._named import named_frame
from tracelock.report.text import percent, time, time_scale

MOST = 12


@dataclass(frozen=True)
class Still:
    """One figure: rows of a name and microseconds; `whole` is what 100 % is, where shares mean something."""

    name: str
    title: str
    axis: str
    rows: tuple[tuple[str, float], ...]
    caption: str
    whole: float | None = None


def export_stills(found: Diagnosed, folder: Path, size: str, formats: Sequence[str]) -> list[Path]:
    """Write the figures that a trace has something for, and their captions as text; return what was written."""
    paths, captions = [], []
    for still in stills(found):
        for kind in formats:
            paths.append(folder / f"{still.name}-{size}.{kind}")
            write_bytes(paths[-1], save(still.name, partial(draw, still), SIZES[size], kind))
        captions.append(textwrap.fill(f"{still.name}: {still.title}. {still.caption} {_made(found)}", 100) + "\n")
    write_text(folder / CAPTIONS, "\n".join(captions))
    return [*paths, folder / CAPTIONS]


def stills(found: Diagnosed) -> Iterator[Still]:
    """Yield the figures of a trace: parts of the step, idle causes of each GPU, operators, kernels."""
    steps = found.step.count or 1
    if found.step.breakdown_us is not None and found.step.mean_us:
        parts = [(part.label, getattr(found.step.breakdown_us, part.key)) for part in STEP]
        told = f"Mean of {steps} recorded steps, exclusive parts: each moment is counted once."
        yield Still("breakdown", "Where a step goes", "time of a step", _largest(parts), told, found.step.mean_us)
    for gpu in found.gpus:
        causes = [(part.label, getattr(gpu.idle_causes_us, part.key, 0.0)) for part in IDLE]
        if shown := _largest(causes):
            told = f"Idle time of GPU {gpu.id} by cause, of {time(gpu.span_us)} that were recorded."
            yield Still(f"idle-{gpu.id}", f"What GPU {gpu.id} waits for", "idle time", shown, told, gpu.span_us)
    device = any(each.self_device_us for each in found.operators)
    own = [(each.name, (each.self_device_us or 0.0) if device else each.self_cpu_us) for each in found.operators]
    where = "on the device" if device else "on the host"
    for name, rows, told in (
        ("operators", own, f"Own time {where} in a step"),
        ("kernels", [(each.name, each.total_us) for each in found.kernels], "Time of all launches in a step"),
    ):
        if shown := _largest([(row, value / steps) for row, value in rows]):
            caption = f"{told}, mean of {steps} steps: the {len(shown)} of {len(rows)} {name} that take most."
            yield Still(name, f"{name.capitalize()} that take most time", "time a step", shown, caption)


def draw(still: Still, width: float) -> Figure:
    """Return a figure, `width` inches wide, with its caption."""
    scale, unit = time_scale([value for _, value in still.rows])
    texts = [time(value) + (f"  {percent(value / still.whole)}" if still.whole else "") for _, value in still.rows]
    names = [name for name, _ in still.rows]
    frame = named_frame(width, (still.title, f"{unit}, one recording"), names, [still.caption], texts)
    for row, (_, value) in enumerate(still.rows):
        frame.axes.barh(frame.at(row), value / scale, height=frame.bar, color=style.BLUE, zorder=2)
    frame.axes.set_xlim(0, None)
    frame.axes.set_xlabel(f"{still.axis} ({unit})")
    return frame.figure


def _largest(rows: Sequence[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    return tuple(sorted((row for row in rows if row[1] > 0), key=lambda row: (-row[1], row[0]))[:MOST])


def _made(found: Diagnosed) -> str:
    names = sorted({device.name for device in found.trace.devices if device.name})
    on = f" on {', '.join(names)}" if names else ""
    return f"One recording{on}: no interval; profiled steps are slower than others."
