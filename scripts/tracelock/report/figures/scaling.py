"""How throughput grows with a numeric factor, such as workers or batch size, all else equal."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter, NullLocator

from tracelock.report import style
from tracelock.report.figures._frame import empty, notes_below, titles, unlocked_note
from tracelock.report.figures._layout import MARGIN, SIZE, all_lines, wrap, wrapped
from tracelock.report.text import digits, percent, plural, span
from tracelock.study.comparison import Case, Comparison
from tracelock.study.effects import metric
from tracelock.study.overview import settings_text, value_text
from tracelock.study.stats import Interval

TITLE = "Throughput over a numeric factor"
LEAST = 3  # values: two make no curve
MOST = 4  # curves of a panel
_CURVES = (("o", "-"), ("s", "--"), ("^", "-."), ("D", ":"))
_COLORS = (style.INK, style.BLUE, style.VERMILION, style.GREEN)
_PANEL, _LEGEND = 1.55, 0.17


@dataclass(frozen=True)
class Curve:
    """The cases that differ in one factor alone, by its value; samples a second, or steps a second."""

    name: str
    x: tuple[float, ...]
    y: tuple[Interval, ...]


@dataclass(frozen=True)
class Panel:
    """A factor with its curves, and how many curves are left out."""

    factor: str
    curves: tuple[Curve, ...]
    left: int


def caption(comparison: Comparison) -> str:
    """Return what is drawn, with the number of runs."""
    n = span(line.case.runs for line in all_lines(comparison))
    left = sum(panel.left for panel in panels(comparison))
    more = f" {plural(left, 'curve')} left out: the baseline's and the fastest are shown." if left else ""
    return (
        f"{_unit(comparison).capitalize()} a second without the profiler, median of the runs (n = {n} a point) with "
        f"{percent(comparison.method.confidence)} interval. A curve joins variants that differ in that factor "
        f"alone.{more}"
    )


def present(comparison: Comparison) -> bool:
    """Return whether a factor has three numeric values that were measured."""
    return bool(panels(comparison))


def draw(comparison: Comparison, width: float, notes: bool = True) -> Figure:
    """Return the figure."""
    found = panels(comparison)
    if not found:
        return empty(width, TITLE, f"No factor has {LEAST} numeric values or more that were measured.")
    unit = _unit(comparison)
    under = wrap(f"{unit} per second, more is better", width - 2 * MARGIN, SIZE)
    told = [caption(comparison), *unlocked_note(comparison)] if notes else []
    below = [part for note in told for part in wrap(note, width - 2 * MARGIN, SIZE - 1)]
    heights = [_LEGEND * len(panel.curves) + 0.1 + _PANEL + 0.5 for panel in found]
    top = 0.34 + 0.15 * len(under)
    total = top + sum(heights) + 0.14 * len(below) + 0.04
    figure = Figure(figsize=(width, total))
    titles(figure, TITLE, under)
    notes_below(figure, below)
    ceiling = total - top
    for panel, height in zip(found, heights, strict=True):
        _panel(figure, panel, ceiling, unit)
        ceiling -= height
    return figure


def panels(comparison: Comparison) -> list[Panel]:
    """Return a panel for each factor with enough numeric values, in the order of the study."""
    return [panel for factor in comparison.factors if (panel := _curves(comparison, factor)).curves]


def _panel(figure: Figure, panel: Panel, ceiling: float, unit: str) -> None:
    width, total = figure.get_size_inches()
    floor = ceiling - _LEGEND * len(panel.curves) - 0.1 - _PANEL
    axes = figure.add_axes((0.62 / width, floor / total, (width - 0.77) / width, _PANEL / total))
    axes.grid(axis="y")
    for number, curve in enumerate(panel.curves):
        (marker, line), color = _CURVES[number], _COLORS[number]
        y = [one.value for one in curve.y]
        bars = [[one.value - one.low for one in curve.y], [one.high - one.value for one in curve.y]]
        axes.errorbar(
            curve.x, y, yerr=bars, marker=marker, ls=line, color=color, lw=1.2, ms=4.5,
            mec=style.PAPER, mew=0.5, elinewidth=1.0, capsize=2.5,
        )  # fmt: skip
        at = (ceiling - _LEGEND * (number + 0.5)) / total
        ends = [0.62 / width, 0.97 / width]
        figure.add_artist(
            Line2D(ends, [at, at], marker=marker, ls=line, color=color, lw=1.2, ms=4.5, mec=style.PAPER, mew=0.5,
                   transform=figure.transFigure)
        )  # fmt: skip
        figure.text(1.05 / width, at, wrapped(curve.name, width - 1.2)[0], size=SIZE, va="center")
    _scale(axes, panel)
    axes.set_ylabel(f"{unit}/s")
    axes.set_xlabel(f"{panel.factor} (value)" if len(panel.factor) < 30 else "factor (value)")


def _scale(axes: Axes, panel: Panel) -> None:
    """Start at zero, so that twice as much looks like it; values that grow by factors stand evenly apart."""
    values = sorted({x for curve in panel.curves for x in curve.x})
    if values[0] > 0 and values[-1] / values[0] >= 8:
        axes.set_xscale("log", base=2)
    few = values if len(values) <= 8 else values[:: math.ceil(len(values) / 8)]
    axes.set_xticks(few, [digits(value, 1) for value in few])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(0, 1.12 * max(one.high for curve in panel.curves for one in curve.y))
    axes.margins(x=0.05)


def _curves(comparison: Comparison, factor: str) -> Panel:
    found: dict[str, list[Case]] = {}
    for line in all_lines(comparison):
        case = line.case
        value = case.factors.get(factor)
        if isinstance(value, bool) or not isinstance(value, int | float) or _rate(comparison, case) is None:
            continue
        others = {name: other for name, other in case.factors.items() if name != factor}
        found.setdefault(json.dumps([case.environment, others], sort_keys=True, default=str), []).append(case)
    whole = [cases for cases in found.values() if len({case.factors[factor] for case in cases}) >= LEAST]
    whole.sort(key=lambda cases: (not any(case.baseline for case in cases), -_fastest(comparison, cases)))
    curves = [_curve(comparison, factor, cases) for cases in whole[:MOST]]
    return Panel(factor, tuple(curves), max(0, len(whole) - MOST))


def _curve(comparison: Comparison, factor: str, cases: Sequence[Case]) -> Curve:
    ordered = sorted(cases, key=lambda case: float(case.factors[factor]))
    others = {name: value_text(value) for name, value in cases[0].factors.items() if name != factor}
    parts = [cases[0].environment] if len(comparison.environments) > 1 else []
    parts += [settings_text(others)] if others else []
    points = [(float(case.factors[factor]), rate) for case in ordered if (rate := _rate(comparison, case))]
    return Curve(", ".join(parts) or "all else equal", tuple(x for x, _ in points), tuple(y for _, y in points))


def _rate(comparison: Comparison, case: Case) -> Interval | None:
    """Return samples a second, or steps a second where samples are not known of every case."""
    if metric(comparison) == "time per sample":
        return case.throughput
    step = case.step
    return Interval(1e6 / step.value, 1e6 / step.high, 1e6 / step.low) if step and step.low > 0 else None


def _fastest(comparison: Comparison, cases: Sequence[Case]) -> float:
    return max(rate.value for case in cases if (rate := _rate(comparison, case)))


def _unit(comparison: Comparison) -> str:
    return "samples" if metric(comparison) == "time per sample" else "steps"
