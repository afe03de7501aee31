"""The way from the baseline to the fastest that was measured: each change, and what it brought."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tracelock.report import style
from tracelock.report.figures._frame import empty, unlocked_note
from tracelock.report.figures._named import named_frame
from tracelock.report.path import BestPath, best_path
from tracelock.report.text import percent, plural, ratio, span
from tracelock.study.comparison import Answer, Comparison
from tracelock.study.overview import settings_text
from tracelock.study.records import Edge

TITLE = "From the baseline to the fastest"


def caption(comparison: Comparison) -> str:
    """Return what is drawn, and that a product is no measurement."""
    answer, path = _chosen(comparison)
    if answer is None or path is None:
        return "Nothing was clearly faster than the baseline."
    n = span((case.runs for case in comparison.cases if case.runs), " to ")
    where = f" in environment {answer.environment}" if len(comparison.environments) > 1 else ""
    several = (
        f" The last bar is the product of {plural(len(path.edges), 'step')}, each measured beside the one before."
        if len(path.edges) > 1
        else ""
    )
    return (
        f"Time per {path.per} against the baseline{where}, median of the runs (n = {n} a variant, without the "
        f"profiler). Line: {percent(comparison.method.confidence)} interval of that step's ratio.{several}"
    )


def present(comparison: Comparison) -> bool:
    """Return whether anything was clearly faster than the baseline."""
    return _chosen(comparison)[1] is not None


def draw(comparison: Comparison, width: float, notes: bool = True) -> Figure:
    """Return the figure."""
    _, path = _chosen(comparison)
    if path is None:
        return empty(width, TITLE, caption(comparison))
    names = ["baseline", *(_name(edge) for edge in path.edges)]
    frame = named_frame(
        width,
        (TITLE, f"time per {path.per} against the baseline's, shorter is better"),
        names,
        [caption(comparison), *unlocked_note(comparison)] if notes else [],
        right=["×1.00", *(_told(edge) for edge in path.edges)],
    )
    height, before = frame.bar, 1.0
    frame.axes.barh(frame.at(0), 1.0, height=height, color=style.INK, zorder=2)
    for row, edge in enumerate(path.edges, start=1):
        value = before * (edge.ratio or 1.0)
        frame.axes.barh(frame.at(row), value, height=height, color=style.BLUE, zorder=2)
        _interval(frame.axes, frame.at(row), before, edge)
        frame.axes.plot([before, before], [frame.at(row - 1), frame.at(row)], color=style.MUTED, lw=0.7, ls=":")
        before = value
    frame.axes.set_xlim(0, 1.05 * max(1.0, frame.axes.get_xlim()[1] / 1.05))
    frame.axes.set_xlabel(f"time per {path.per} (baseline = 1)")
    return frame.figure


def _interval(axes: Axes, y: float, before: float, edge: Edge) -> None:
    if edge.ratio_low is not None and edge.ratio_high is not None:
        ends = [before * edge.ratio_low, before * edge.ratio_high]
        axes.plot(ends, [y, y], "-|", color=style.INK, lw=1.1, ms=6, mew=1.1, zorder=4)


def _chosen(comparison: Comparison) -> tuple[Answer | None, BestPath | None]:
    """Return the first environment in which something was clearly faster, and the path there."""
    paths: Sequence[tuple[Answer, BestPath]] = [(one, best_path(comparison, one)) for one in comparison.answers]
    return next(((one, path) for one, path in paths if path.edges), (None, None))


def _name(edge: Edge) -> str:
    why = f"   (against {edge.finding})" if edge.finding else ""
    return f"{settings_text(edge.settings)}{why}"


def _told(edge: Edge) -> str:
    if edge.ratio_low is None or edge.ratio_high is None:
        return f"×{ratio(edge.ratio)}"
    return f"×{ratio(edge.ratio)} ({ratio(edge.ratio_low)}–{ratio(edge.ratio_high)})"
