"""Where a profiled step goes: the exclusive parts of docs/definitions.md, stacked, by variant."""

from __future__ import annotations

from dataclasses import asdict

from matplotlib.figure import Figure

from tracelock.analysis.parts import STEP
from tracelock.report.figures._bars import draw_bars, time_bars
from tracelock.report.figures._frame import empty, unlocked_note
from tracelock.report.figures._layout import measured_lines
from tracelock.report.figures._stack import drawn
from tracelock.report.style import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, YELLOW, Look
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
    told = [caption(comparison), *unlocked_note(comparison)] if notes else []
    heads = (TITLE, "per profiled step", "time of a profiled step")
    parts = [_parts(line) for line in measured_lines(comparison)]
    return draw_bars(comparison, width, time_bars(heads, parts, PARTS, LOOKS), told)


def _parts(line: Line) -> dict[str, float]:
    """Return the parts of a line in the order of drawing, empty where they are not known. Microseconds."""
    breakdown = line.case.explained.breakdown
    known = asdict(breakdown) if breakdown else {}
    return {key: known[key] for key in PARTS if key in known}
