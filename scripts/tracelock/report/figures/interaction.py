"""Two factors at once: what they bring together, against what each alone would make one expect."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tracelock.report import style
from tracelock.report.figures._frame import empty, unlocked_note
from tracelock.report.figures._named import Named, named_frame
from tracelock.report.figures._stack import legend_room, marker_legend, marker_style
from tracelock.report.style import Look
from tracelock.report.text import ratio, span
from tracelock.study.comparison import Comparison
from tracelock.study.effects import Interaction, interactions, metric
from tracelock.study.overview import settings_text

TITLE = "What two changes do together"
MOST = 8
LOOKS = {
    "first alone": Look(style.SKY, marker="<"),
    "second alone": Look(style.ORANGE, marker=">"),
    "expected of both": Look(style.INK, marker="|"),
    "both, measured": Look(style.VERMILION, marker="D"),
}


def caption(comparison: Comparison) -> str:
    """Return what is drawn, with the number of contexts."""
    rows, left = _rows(comparison)
    n = span((row.contexts for row in rows), " to ")
    more = f" The strongest {len(rows)} of {len(rows) + left} pairs." if left else ""
    return (
        f"Ratio of {metric(comparison)} to the same variant with neither change: geometric mean over the settings "
        f"of all other factors (n = {n}), of medians over runs; no interval. Expected of both: the "
        f"product of each alone. Left of it: together they bring more.{more}"
    )


def present(comparison: Comparison) -> bool:
    """Return whether two factors were varied together."""
    return bool(_rows(comparison)[0])


def draw(comparison: Comparison, width: float, notes: bool = True) -> Figure:
    """Return the figure."""
    rows, _ = _rows(comparison)
    if not rows:
        return empty(width, TITLE, "No two factors were varied together.")
    frame = named_frame(
        width,
        (TITLE, f"{metric(comparison)} against neither change, left is faster"),
        [settings_text(dict(zip(row.factors, row.values, strict=True))) for row in rows],
        [caption(comparison), *unlocked_note(comparison)] if notes else [],
        right=[f"×{ratio(row.together)}, expected ×{ratio(row.expected)}" for row in rows],
        legend=legend_room(list(LOOKS), width),
    )
    marker_legend(frame.figure, LOOKS, frame.legend_top)
    for number, row in enumerate(rows):
        _mark(frame.axes, frame, number, row)
    frame.axes.axvline(1.0, color=style.MUTED, lw=0.8, ls=(0, (4, 3)), zorder=1)
    frame.axes.margins(x=0.06)
    frame.axes.set_xlabel("ratio of times (neither change = 1)")
    return frame.figure


def _mark(axes: Axes, frame: Named, number: int, row: Interaction) -> None:
    values = (*row.alone, row.expected, row.together)
    y = frame.at(number)
    axes.plot([row.expected, row.together], [y, y], color=style.VERMILION, lw=1.2, zorder=2)
    for value, look in zip(values, LOOKS.values(), strict=True):
        axes.plot(value, y, zorder=3, **marker_style(look))


def _rows(comparison: Comparison) -> tuple[list[Interaction], int]:
    """Return the strongest interactions of the first environment, and how many are left out."""
    found = interactions(comparison, comparison.environments[0].name) if comparison.environments else ()
    return list(found[:MOST]), max(0, len(found) - MOST)
