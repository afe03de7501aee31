"""How busy the accelerators were, and what kept them waiting, by variant."""

from __future__ import annotations

from dataclasses import asdict

from matplotlib.figure import Figure

from tracelock.analysis.parts import IDLE, Labelled
from tracelock.report.figures._bars import Bars, draw_bars
from tracelock.report.figures._frame import empty, unlocked_note
from tracelock.report.figures._layout import measured_lines
from tracelock.report.figures._stack import drawn, shown
from tracelock.report.style import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, YELLOW, Look
from tracelock.report.text import UNKNOWN, percent
from tracelock.study.comparison import Comparison
from tracelock.study.overview import Line

TITLE = "What the GPU does"
LOOKS = {
    "busy": Look(BLUE, ".."),
    "dataloader": Look(VERMILION, "////"),
    "host": Look(SKY),
    "synchronization": Look(ORANGE, "\\\\\\\\"),
    "launch": Look(GREEN, "--"),
    "communication": Look(PURPLE, "xx"),
    "unattributed": Look(GREY),
    "idle": Look(YELLOW, "++"),
}
PARTS = drawn((Labelled("busy", "busy", "busy"), *IDLE, Labelled("idle", "idle", "idle")), LOOKS)


def caption(comparison: Comparison) -> str:
    """Return what is drawn."""
    most = max(
        (line.case.explained.device.count for line in _lines(comparison) if line.case.explained.device), default=0
    )
    over = "the GPU" if most == 1 else f"{most} GPUs"
    return f"Share of the profiled steps, mean over {over} and all analysed traces of a variant. Bold: baseline."


def present(comparison: Comparison) -> bool:
    """Return whether a trace told of an accelerator."""
    return any(line.case.explained.device for line in _lines(comparison))


def draw(comparison: Comparison, width: float, notes: bool = True) -> Figure:
    """Return the figure."""
    if not present(comparison):
        return empty(width, TITLE, "No analysed trace holds work of a GPU.")
    parts = [_parts(line) for line in _lines(comparison)]
    keys = {key for key in PARTS if any(key in shown([part]) for part in parts if part)}
    named = {key: name for key, name in PARTS.items() if key in keys}
    texts = [percent(part["busy"]) + " busy" if part else UNKNOWN for part in parts]
    shares = [{key: 100 * value for key, value in part.items()} for part in parts]
    told = [caption(comparison), *unlocked_note(comparison)] if notes else []
    axis = "share of the profiled steps (%)"
    what = Bars(TITLE, "per cent of the profiled steps", axis, shares, named, LOOKS, texts, 100.5)
    return draw_bars(comparison, width, what, told)


def _lines(comparison: Comparison) -> tuple[Line, ...]:
    return measured_lines(comparison)


def _parts(line: Line) -> dict[str, float]:
    """Return busy and idle shares; idle as one part where its causes are not known."""
    device = line.case.explained.device
    if device is None:
        return {}
    idle = asdict(device.idle_causes) if device.idle_causes else {"idle": 1 - device.utilization}
    return {"busy": device.utilization, **idle}
