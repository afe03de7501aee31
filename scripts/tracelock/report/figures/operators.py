"""Operators whose own time changed most between the baseline and the fastest variant."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.figure import Figure

from tracelock.report import style
from tracelock.report.figures._frame import empty, unlocked_note
from tracelock.report.figures._layout import measured_lines
from tracelock.report.figures._named import named_frame
from tracelock.report.text import label, plural, time, time_scale
from tracelock.study.comparison import Case, Comparison

TITLE = "Operators that changed most"
MOST = 12


@dataclass(frozen=True)
class Changed:
    """An operator in two cases: microseconds of its own per step, or per sample; None where a case has it not."""

    name: str
    before: float | None
    after: float | None

    @property
    def change(self) -> float:
        """What it takes more (above 0) or less in the second case."""
        return (self.after or 0.0) - (self.before or 0.0)


def caption(comparison: Comparison) -> str:
    """Return what is drawn, between which variants."""
    pair = _pair(comparison)
    if pair is None:
        return "No two variants of one environment have operators in their traces."
    before, after = (label(case, len(comparison.environments)) for case in pair)
    where = "on the device" if _on_device(comparison, pair) else "on the host"
    traces = " and ".join(plural(case.explained.analysed, "trace") for case in pair)
    return (
        f"Own time {where}, median over the traces ({traces}), of the {MOST} operators that changed most "
        f"from {before} to {after}. Left of zero: less time. Profiled steps, which include what the profiler costs."
    )


def present(comparison: Comparison) -> bool:
    """Return whether two variants can be held against each other."""
    return _pair(comparison) is not None


def draw(comparison: Comparison, width: float, notes: bool = True) -> Figure:
    """Return the figure."""
    pair = _pair(comparison)
    if pair is None:
        return empty(width, TITLE, caption(comparison))
    rows, unit_of = changed(comparison, *pair), "sample" if _per_sample(pair) else "step"
    scale, unit = time_scale([row.change for row in rows])
    frame = named_frame(
        width,
        (TITLE, f"change in {unit} per {unit_of}, baseline to fastest"),
        [row.name for row in rows],
        [caption(comparison), *unlocked_note(comparison)] if notes else [],
        right=[_told(row) for row in rows],
    )
    for number, row in enumerate(rows):
        look = (style.VERMILION, "////") if row.change > 0 else (style.BLUE, "")
        frame.axes.barh(
            frame.at(number), row.change / scale, height=frame.bar, color=look[0], hatch=look[1],
            edgecolor=style.PAPER, lw=0.5, zorder=2,
        )  # fmt: skip
    frame.axes.axvline(0, color=style.INK, lw=0.7, zorder=3)
    frame.axes.margins(x=0.04)
    frame.axes.set_xlabel(f"change of own time per {unit_of} ({unit})")
    return frame.figure


def changed(comparison: Comparison, before: Case, after: Case) -> list[Changed]:
    """Return the operators of two cases that changed most, the largest change first; at most `MOST`."""
    device = _on_device(comparison, (before, after))
    times = []
    for case in (before, after):
        each = case.step.value / case.sample.value if case.step and case.sample else 1.0
        samples = each if _per_sample((before, after)) else 1.0
        own = {row.name: row.self_device_us if device else row.self_cpu_us for row in comparison.operators_of(case)}
        times.append({name: (value or 0.0) / samples for name, value in own.items()})
    names = {**times[0], **times[1]}
    found = [Changed(name, times[0].get(name), times[1].get(name)) for name in names]
    return sorted((row for row in found if row.change), key=lambda row: (-abs(row.change), row.name))[:MOST]


def _pair(comparison: Comparison) -> tuple[Case, Case] | None:
    """Return baseline and fastest of the first environment where both have operators, and differ in them."""
    for place in comparison.environments:
        lines = [line for line in measured_lines(comparison) if line.case.environment == place.name]
        cases = [line.case for line in lines if comparison.operators_of(line.case)]
        if len(cases) > 1 and cases[0].baseline and changed(comparison, cases[0], cases[1]):
            return cases[0], cases[1]
    return None


def _per_sample(pair: tuple[Case, Case]) -> bool:
    return all(case.step and case.sample for case in pair)


def _on_device(comparison: Comparison, pair: tuple[Case, Case]) -> bool:
    return any(row.self_device_us for case in pair for row in comparison.operators_of(case))


def _told(row: Changed) -> str:
    if row.before is None or row.after is None:
        return f"{time(row.after or row.before)} {'appeared' if row.before is None else 'gone'}"
    return f"{time(row.before)} → {time(row.after)}"
