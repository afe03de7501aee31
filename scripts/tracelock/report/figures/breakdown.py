"""Where a profiled step goes: the exclusive parts of docs/definitions.md, stacked, by variant."""

from __future__ import annotations

from dataclasses import asdict

from matplotlib.figure import Figure

from tracelock.analysis.parts import STEP
from tracelock.report.figures._frame import beside, empty, rows_frame, unlocked_note
from tracelock.report.figures._layout import measured_lines
from tracelock.report.figures._stack import drawn, legend, legend_room, shown, stack
from tracelock.report.style import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, YELLOW, Look
from tracelock.report.text import UNKNOWN, time, time_scale
from tracelock.study.comparison import Comparison
from tracelock.study.overview import Line

TITLE = "Where a step goes"
LOOKS = {
    "dataloader": Look(VERMILION, "////"),
    "cpu_op": Look(SKY),
    "kernel": Look(BLUE, ".."),
    "memcpy": Look(ORANGE, "\\\\\\\\"),
    "memset": Look(YELLOW, "++"),
    "communication": Look(PURPLE, "xx"),
    "runtime": Look(GREEN, "--"),
    "other": Look(GREY),
}
PARTS = drawn(STEP, LOOKS)


def caption(comparison: Comparison) -> str:
    """Return what is drawn."""
    return (
        "Mean profiled step of all analysed traces of a variant, each moment counted once; it includes what the "
        "profiler costs. Parts of less than 0.4 % of every step are not in the legend. Bold: baseline."
    )


def present(comparison: Comparison) -> bool:
    """Return whether a trace told of steps."""
    return any(line.case.explained.breakdown for line in measured_lines(comparison))


def draw(comparison: Comparison, width: float, notes: bool = True) -> Figure:
    """Return the figure."""
    if not present(comparison):
        return empty(width, TITLE, "Not known: no trace with steps was analysed.")
    parts = [_parts(line) for line in measured_lines(comparison)]
    totals = [sum(part.values()) for part in parts if part]
    scale, unit = time_scale(totals)
    named = {key: PARTS[key] for key in shown([part for part in parts if part])}
    texts = [time(sum(part.values())) if part else UNKNOWN for part in parts]
    frame = rows_frame(
        comparison,
        width,
        [(TITLE, f"{unit} per profiled step")],
        [caption(comparison), *unlocked_note(comparison)] if notes else [],
        right=texts,
        legend=legend_room(list(named.values()), width),
    )
    legend(frame.figure, named, LOOKS, frame.legend_top)
    axes = frame.axes[0]
    for row, (line, part, text) in enumerate(zip(frame.lines, parts, texts, strict=True)):
        stack(axes, row, {key: value / scale for key, value in part.items()}, LOOKS, 0.62 * frame.unit)
        beside(axes, row, text, bold=line.case.baseline)
    axes.set_xlim(0, 1.01 * max(totals) / scale)
    axes.set_xlabel(f"time of a profiled step ({unit})")
    return frame.figure


def _parts(line: Line) -> dict[str, float]:
    """Return the parts of a line in the order of drawing, empty where they are not known. Microseconds."""
    breakdown = line.case.explained.breakdown
    known = asdict(breakdown) if breakdown else {}
    return {key: known[key] for key in PARTS if key in known}
