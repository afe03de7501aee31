"""For how long a step leaves the accelerator idle, by cause: what `device` shows as shares, as time."""

from __future__ import annotations

from dataclasses import asdict

from matplotlib.figure import Figure

from tracelock.analysis.parts import IDLE
from tracelock.report.figures._bars import draw_bars, time_bars
from tracelock.report.figures._frame import empty, unlocked_note
from tracelock.report.figures._layout import measured_lines
from tracelock.report.figures._stack import drawn
from tracelock.report.figures.device import LOOKS as DEVICE_LOOKS
from tracelock.study.comparison import Comparison
from tracelock.study.overview import Line

TITLE = "What a GPU waits for in a step"
LOOKS = {key: look for key, look in DEVICE_LOOKS.items() if key not in ("busy", "idle")}
PARTS = drawn(IDLE, LOOKS)


def caption(comparison: Comparison) -> str:
    """Return what is drawn."""
    traces = sum(line.case.explained.analysed for line in measured_lines(comparison))
    return (
        f"Idle time of a GPU in a profiled step (share of the recorded time that it is idle × mean profiled step), by "
        f"cause; mean over GPUs and traces (n = {traces} traces in all). Bold: baseline."
    )


def present(comparison: Comparison) -> bool:
    """Return whether a trace told why an accelerator was idle."""
    return any(_parts(line) for line in measured_lines(comparison))


def draw(comparison: Comparison, width: float, notes: bool = True) -> Figure:
    """Return the figure."""
    if not present(comparison):
        return empty(width, TITLE, "No analysed trace tells why a GPU was idle.")
    told = [caption(comparison), *unlocked_note(comparison)] if notes else []
    heads = (TITLE, "idle per profiled step, less is better", "idle time of a profiled step")
    parts = [_parts(line) for line in measured_lines(comparison)]
    return draw_bars(comparison, width, time_bars(heads, parts, PARTS, LOOKS), told)


def _parts(line: Line) -> dict[str, float]:
    """Return the idle time of a step by cause, empty where it is not known. Microseconds."""
    device, step = line.case.explained.device, line.case.explained.breakdown
    if device is None or device.idle_causes is None or step is None:
        return {}
    whole = sum(asdict(step).values())
    return {key: share * whole for key, share in asdict(device.idle_causes).items() if key in PARTS}
