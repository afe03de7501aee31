"""The frame that the figures share: a row a case, its settings as a small table beside it, titles, notes.

Lengths are inches. Rows run downwards from y = 0, one apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import blended_transform_factory

from tracelock.report import style
from tracelock.report.figures._layout import (
    GAP,
    MARGIN,
    ROW,
    SIZE,
    Layout,
    all_lines,
    make_layout,
    measured_lines,
    wrap,
)
from tracelock.report.text import mark
from tracelock.study.comparison import Comparison
from tracelock.study.overview import Line, chosen_text

_BESIDE = 6.0  # points


@dataclass(frozen=True)
class Frame:
    """A figure with one axes for each panel, and the lines that are its rows."""

    figure: Figure
    axes: tuple[Axes, ...]
    outer: tuple[Axes, ...]  # those that have room for texts at their right
    lines: tuple[Line, ...]
    unit: float  # height of a plain row, in rows: 1, or less where labels stand above the marks
    legend_top: float  # upper edge of the room for a legend, below the figure's upper edge


def rows_frame(
    comparison: Comparison,
    width: float,
    panels: Sequence[tuple[str, str]],
    notes: Sequence[str],
    right: Sequence[str] = (),
    legend: float = 0.0,
) -> Frame:
    """Return a figure with a row for each case.

    Parameters
    ----------
    panels
        Title and subtitle of each panel; they lie side by side, on a narrow figure below each other.
    right
        Texts at the right of the last panel (of every panel where they lie below each other), which need room.
    legend
        Room for a legend between the titles and the rows.
    """
    lines = measured_lines(comparison)
    left_out = chosen_text(all_lines(comparison))
    notes = [*notes, left_out] if left_out else notes
    layout = make_layout(comparison, lines, width, [subtitle for _, subtitle in panels], notes, right, legend)
    figure = Figure(figsize=(width, layout.height))
    axes = [_panel(figure, layout, number, title) for number, (title, _) in enumerate(panels)]
    for number, one in enumerate(axes):
        _prepare(one, layout, lines)
        if number == 0 or layout.stacked:
            _labels(one, layout, lines)
    notes_below(figure, layout.notes)
    outer = tuple(axes if layout.stacked else axes[-1:])
    return Frame(figure, tuple(axes), outer, lines, ROW / layout.row, layout.legend_top)


def panels_frame(
    width: float, title: tuple[str, str], labels: Sequence[str], notes: Sequence[str], height: float
) -> Frame:
    """Return a figure with a plain panel of `height` below each label; all share their axes."""
    notes = [part for note in notes for part in wrap(note, width - 2 * MARGIN, SIZE - 1)]
    sub = wrap(title[1], width, SIZE)
    top, bottom, left = 0.34 + 0.15 * len(sub), 0.5, 0.55
    label = 0.12 + 0.14 * max(text.count("\n") + 1 for text in labels)
    total = top + len(labels) * (label + height) + bottom + 0.14 * len(notes) + 0.04
    figure = Figure(figsize=(width, total))
    titles(figure, title[0], sub)
    notes_below(figure, notes)
    axes: list[Axes] = []
    for number, text in enumerate(labels):
        floor = total - top - (number + 1) * (label + height)
        room = (left / width, floor / total, (width - left - 0.15) / width, height / total)
        first = axes[0] if axes else None
        axes.append(figure.add_axes(room, sharex=first, sharey=first))
        axes[-1].grid(axis="y")
        axes[-1].tick_params(labelbottom=number == len(labels) - 1)
        figure.text(left / width, (floor + height + 0.06) / total, text, size=SIZE, va="bottom")
    return Frame(figure, tuple(axes), tuple(axes), (), 1.0, 0.0)


def empty(width: float, title: str, why: str) -> Figure:
    """Return a figure that says why there is nothing to draw."""
    lines = wrap(why, width - 2 * MARGIN, SIZE)
    height = 0.45 + 0.16 * len(lines)
    figure = Figure(figsize=(width, height))
    titles(figure, title, lines)
    return figure


def beside(axes: Axes, y: float, text: str, bold: bool = False) -> None:
    """Write `text` at the right of a row (or of any height, in rows), outside the axes."""
    place = blended_transform_factory(axes.transAxes, axes.transData)
    weight = "bold" if bold else "normal"
    axes.annotate(
        text, (1, y), xycoords=place, xytext=(_BESIDE, 0), textcoords="offset points", va="center", ha="left",
        size=SIZE, weight=weight, annotation_clip=False,
    )  # fmt: skip


def titles(figure: Figure, title: str, under: Sequence[str], x: float = MARGIN, ceiling: float | None = None) -> None:
    """Write a title, and the lines below it, with its upper left corner at `x` and `ceiling` (the figure's)."""
    width, height = figure.get_size_inches()
    top = height if ceiling is None else ceiling
    figure.text(x / width, (top - 0.08) / height, title, size=SIZE + 2.5, weight="bold", va="top")
    for number, part in enumerate(under):
        figure.text(x / width, (top - 0.29 - 0.15 * number) / height, part, size=SIZE, color=style.MUTED, va="top")


def notes_below(figure: Figure, notes: Sequence[str]) -> None:
    """Write lines at the lower edge of a figure."""
    width, height = figure.get_size_inches()
    for number, note in enumerate(reversed(notes)):
        figure.text(MARGIN / width, (0.05 + 0.14 * number) / height, note, size=SIZE - 1, color=style.MUTED)


def heading_beside(axes: Axes, *lines: str) -> None:
    """Write a heading above the texts of `beside`."""
    _heading(axes, 1.0, lines, right=_BESIDE)


def unlocked_note(comparison: Comparison) -> list[str]:
    """Return the note that explains the mark of unlocked environments, where any bears it."""
    names = [place.name for place in comparison.environments if place.unlocked]
    if not names:
        return []
    reasons = "; ".join(f"{place.name} {place.note}" for place in comparison.environments if place.unlocked)
    return [f"{mark(True)} UNLOCKED environment: {reasons}."]


def _panel(figure: Figure, layout: Layout, number: int, title: str) -> Axes:
    x, ceiling = layout.corner(number)
    width, height = layout.width, layout.height
    floor = ceiling - layout.top - layout.plot
    start = MARGIN if number == 0 or layout.stacked else x
    titles(figure, title, layout.subtitles[number], start, ceiling)
    return figure.add_axes((x / width, floor / height, layout.room / width, layout.plot / height))


def _prepare(axes: Axes, layout: Layout, lines: Sequence[Line]) -> None:
    """Rule the rows; a stronger rule parts the environments. Labels stand above the marks of their row."""
    below = 0.5 * ROW / layout.row
    axes.set_ylim(len(lines) - 1 + below, below - 1)
    axes.set_yticks([])
    for row, (line, following) in enumerate(itertools.pairwise(lines)):
        same = line.case.environment == following.case.environment
        axes.axhline(row + below, color=style.GRID if same else style.MUTED, lw=0.5 if same else 0.8, zorder=0)


def _labels(axes: Axes, layout: Layout, lines: Sequence[Line]) -> None:
    """Write the settings of each row left of the axes; without columns above the row's marks."""
    place = blended_transform_factory(axes.transAxes, axes.transData)
    for row, (parts, line) in enumerate(zip(layout.labels, lines, strict=False)):
        bottom = row - (0.5 * ROW + 0.02) / layout.row
        axes.text(
            0, bottom, "\n".join(parts), transform=place, size=SIZE, va="bottom", weight=_weight(line), linespacing=1.1,
            bbox={"facecolor": style.PAPER, "edgecolor": "none", "pad": 0.5},
        )  # fmt: skip
    x = MARGIN - layout.left
    for column in layout.columns or ():
        _heading(axes, x / layout.room, column.heading)
        for row, (value, line) in enumerate(zip(column.values, lines, strict=True)):
            axes.text(x / layout.room, row, value, transform=place, size=SIZE, va="center", weight=_weight(line))
        x += column.width + GAP


def _heading(axes: Axes, x: float, parts: Sequence[str], right: float = 0.0) -> None:
    """Write the lines of a heading above the axes, `right` points right of `x` (a fraction of the axes)."""
    for number, part in enumerate(reversed(parts)):
        axes.annotate(
            part, (x, 1.0), xycoords="axes fraction", xytext=(right, 4 + 9.5 * number), textcoords="offset points",
            size=SIZE, color=style.MUTED, annotation_clip=False,
        )  # fmt: skip


def _weight(line: Line) -> str:
    return "bold" if line.case.baseline else "normal"
