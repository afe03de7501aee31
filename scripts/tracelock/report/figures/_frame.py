"""The frame that the figures share: a row a case, its settings as a small table beside it, titles, notes.

Lengths are inches. Rows run downwards from y = 0, one apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.transforms import blended_transform_factory

from tracelock.report import style
from tracelock.report.text import mark, shorten, shorten_all
from tracelock.study.comparison import Comparison
from tracelock.study.overview import Line, overview, value_text

SIZE = 8.0  # points
_FINE = 720  # dots per inch: letters are not moved to whole dots then
_GAP = 0.14
_BETWEEN = 0.3
_BESIDE = 6.0  # points
_MARGIN = 0.08
_LONGEST = 22


@dataclass(frozen=True)
class Column:
    """A setting that varies: its heading, a line for each part of the name, and a value for each row."""

    heading: tuple[str, ...]
    values: tuple[str, ...]
    width: float


@dataclass(frozen=True)
class Frame:
    """A figure with one axes for each panel, and the lines that are its rows."""

    figure: Figure
    axes: tuple[Axes, ...]
    outer: tuple[Axes, ...]  # those that have room for texts at their right
    lines: tuple[Line, ...]
    thickness: float  # of bars, in rows
    legend_top: float  # upper edge of the room for a legend, below the figure's upper edge


def measured_lines(comparison: Comparison) -> tuple[Line, ...]:
    """Return the lines of the cases that have runs, in the order of all figures and tables."""
    return tuple(line for line in overview(comparison) if line.case.runs)


def rows_frame(
    comparison: Comparison,
    width: float,
    titles: Sequence[tuple[str, str]],
    notes: Sequence[str],
    right: Sequence[str] = (),
    legend: float = 0.0,
) -> Frame:
    """Return a figure with a row for each case.

    Parameters
    ----------
    titles
        Title and subtitle of each panel; panels lie side by side, on a narrow figure below each other.
    right
        Texts at the right of the last panel (of every panel where they lie below each other), which need room.
    legend
        Room for a legend between the titles and the rows.
    """
    lines = measured_lines(comparison)
    columns = _columns(comparison, lines)
    needed = sum(column.width + _GAP for column in columns)
    above = needed > 0.48 * width  # too much to stand beside the rows: a line above each
    left = 0.2 if above or not columns else _MARGIN + needed
    room_right = max((text_width(text, bold=True) for text in right), default=0.0) + 0.14
    row = 0.5 if above else 0.27
    headings = [] if above else [len(column.heading) for column in columns]
    header = max(headings, default=0) * 0.135 + 0.06
    notes = [part for note in notes for part in _wrap(note, width - 2 * _MARGIN, SIZE - 1)]
    sub = [_wrap(subtitle, width if width < 5 else width / len(titles), SIZE) for _, subtitle in titles]
    top = 0.3 + 0.15 * max(len(part) for part in sub) + legend + header
    plot, bottom = row * len(lines) + 0.1, 0.5
    stacked = len(titles) > 1 and width < 5
    panels = len(titles) if stacked else 1
    height = panels * (top + plot + bottom) + 0.14 * len(notes) + 0.04
    figure = Figure(figsize=(width, height))
    axes = []
    across = 1 if stacked else len(titles)
    room = (width - left - room_right - (across - 1) * _BETWEEN) / across
    for number, (title, _) in enumerate(titles):
        column_of, row_of = (0, number) if stacked else (number, 0)
        x = left + column_of * (room + _BETWEEN)
        ceiling = height - row_of * (top + plot + bottom)
        axes.append(figure.add_axes((x / width, (ceiling - top - plot) / height, room / width, plot / height)))
        start = _MARGIN if column_of == 0 else x
        _titles(figure, title, sub[number], start, ceiling, (width, height))
        _prepare(axes[-1], lines)
        if column_of == 0:
            _labels(axes[-1], comparison, lines, None if above else columns, (_MARGIN - left, room, width))
    _notes(figure, notes)
    thickness = 0.5 if above else 0.62
    return Frame(
        figure,
        tuple(axes),
        tuple(axes if stacked else axes[-1:]),
        lines,
        thickness,
        0.3 + 0.15 * max(len(part) for part in sub),
    )


def panels_frame(
    width: float, title: tuple[str, str], labels: Sequence[str], notes: Sequence[str], height: float
) -> Frame:
    """Return a figure with a plain panel of `height` below each label; all share their axes."""
    notes = [part for note in notes for part in _wrap(note, width - 2 * _MARGIN, SIZE - 1)]
    sub = _wrap(title[1], width, SIZE)
    top, bottom, left, label = 0.38 + 0.15 * len(sub), 0.5, 0.55, 0.26
    total = top + len(labels) * (label + height) + bottom + 0.14 * len(notes) + 0.04
    figure = Figure(figsize=(width, total))
    _titles(figure, title[0], sub, _MARGIN, total, (width, total))
    _notes(figure, notes)
    axes: list[Axes] = []
    for number, text in enumerate(labels):
        floor = total - top - (number + 1) * (label + height)
        room = (left / width, floor / total, (width - left - 0.15) / width, height / total)
        first = axes[0] if axes else None
        axes.append(figure.add_axes(room, sharex=first, sharey=first))
        axes[-1].grid(axis="y")
        axes[-1].tick_params(labelbottom=number == len(labels) - 1)
        figure.text(left / width, (floor + height + 0.06) / total, text, size=SIZE, va="bottom")
    return Frame(figure, tuple(axes), tuple(axes), (), 0.0, 0.0)


def empty(width: float, title: str, why: str) -> Figure:
    """Return a figure that says why there is nothing to draw."""
    lines = _wrap(why, width - 2 * _MARGIN, SIZE)
    height = 0.45 + 0.16 * len(lines)
    figure = Figure(figsize=(width, height))
    _titles(figure, title, lines, _MARGIN, height, (width, height))
    return figure


def beside(axes: Axes, row: int, text: str, bold: bool = False) -> None:
    """Write `text` at the right of a row, outside the axes."""
    place = blended_transform_factory(axes.transAxes, axes.transData)
    weight = "bold" if bold else "normal"
    axes.annotate(
        text, (1, row), xycoords=place, xytext=(_BESIDE, 0), textcoords="offset points", va="center", ha="left",
        size=SIZE, weight=weight, annotation_clip=False,
    )  # fmt: skip


def heading_beside(axes: Axes, *lines: str) -> None:
    """Write a heading above the texts of `beside`."""
    _heading(axes, 1.0, lines, right=_BESIDE)


def row_labels(comparison: Comparison, lines: Sequence[Line], width: float) -> list[str]:
    """Return a text for each line, at most `width` inches wide: its settings, long values shortened first."""
    columns = [column for column in _columns(comparison, lines) if column.heading != ("",)]
    marks = [mark(line.case.unlocked) if len(comparison.environments) == 1 else "" for line in lines]
    rows = [
        ", ".join(f"{'_'.join(column.heading)}={column.values[row]}" for column in columns) for row in range(len(lines))
    ]
    texts = [(text or line.case.variant) + end for text, line, end in zip(rows, lines, marks, strict=True)]
    return [shorten(text, int(width / text_width("n") * 0.98)) for text in texts]


def text_width(text: str, size: float = SIZE, bold: bool = False) -> float:
    """Return the width of `text` in inches."""
    return _measure(text, size, bold)


def unlocked_note(comparison: Comparison) -> list[str]:
    """Return the note that explains the mark of unlocked environments, where any bears it."""
    names = [place.name for place in comparison.environments if place.unlocked]
    if not names:
        return []
    reasons = "; ".join(f"{place.name} {place.note}" for place in comparison.environments if place.unlocked)
    return [f"{mark(True)} UNLOCKED environment: {reasons}."]


@cache
def _ruler() -> Any:
    """Return a renderer to measure texts with; a tiny one, for its canvas is never drawn on."""
    return FigureCanvasAgg(Figure(figsize=(0.1, 0.1), dpi=_FINE)).get_renderer()  # type: ignore[no-untyped-call]


@cache
def _measure(text: str, size: float, bold: bool) -> float:
    font = FontProperties(family="DejaVu Sans", size=size, weight="bold" if bold else "normal")
    return float(_ruler().get_text_width_height_descent(text, font, ismath=False)[0]) / _FINE


def _wrap(text: str, width: float, size: float) -> list[str]:
    lines: list[str] = []
    for word in text.split():
        if lines and 1.03 * text_width(f"{lines[-1]} {word}", size) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines or [""]


def _columns(comparison: Comparison, lines: Sequence[Line]) -> list[Column]:
    """Return a column for each setting that varies among the rows, and one for the environment where it varies."""
    columns = []
    if len(comparison.environments) > 1:
        columns.append(_column("environment", [line.case.environment + mark(line.case.unlocked) for line in lines]))
    for name in comparison.factors:
        columns.append(_column(name, [value_text(line.case.factors[name]) for line in lines]))
    if len(comparison.environments) == 1 and columns and lines and lines[0].case.unlocked:
        columns.append(_column("", [mark(line.case.unlocked) for line in lines]))
    return columns


def _column(name: str, values: Sequence[str]) -> Column:
    heading = tuple(shorten(part, _LONGEST) for part in name.split("_"))
    values = tuple(shorten_all(values, _LONGEST))
    widest = max(*(text_width(part) for part in heading), *(text_width(value, bold=True) for value in values))
    return Column(heading, values, widest)


def _notes(figure: Figure, notes: Sequence[str]) -> None:
    width, height = figure.get_size_inches()
    for number, note in enumerate(reversed(notes)):
        figure.text(_MARGIN / width, (0.05 + 0.14 * number) / height, note, size=SIZE - 1, color=style.MUTED)


def _titles(
    figure: Figure, title: str, sub: Sequence[str], x: float, ceiling: float, size: tuple[float, float]
) -> None:
    width, height = size
    figure.text(x / width, (ceiling - 0.08) / height, title, size=SIZE + 2.5, weight="bold", va="top")
    for number, part in enumerate(sub):
        figure.text(x / width, (ceiling - 0.29 - 0.15 * number) / height, part, size=SIZE, color=style.MUTED, va="top")


def _prepare(axes: Axes, lines: Sequence[Line]) -> None:
    """Rule the rows; a stronger rule parts the environments."""
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_yticks([])
    for row, (above, below) in enumerate(itertools.pairwise(lines)):
        same = above.case.environment == below.case.environment
        axes.axhline(row + 0.5, color=style.GRID if same else style.MUTED, lw=0.5 if same else 0.8, zorder=0)


def _labels(
    axes: Axes,
    comparison: Comparison,
    lines: Sequence[Line],
    columns: Sequence[Column] | None,
    space: tuple[float, float, float],
) -> None:
    """Write the settings of each row left of the axes; without columns as one text above the row's marks.

    Parameters
    ----------
    space
        Where the columns start, right of the axes' left edge; the width of the axes; the width of the figure.
    """
    start, room, width = space
    place = blended_transform_factory(axes.transAxes, axes.transData)
    if columns is None:
        for row, (text, line) in enumerate(zip(row_labels(comparison, lines, width), lines, strict=True)):
            axes.text(0, row - 0.37, text, transform=place, size=SIZE, va="center", weight=_weight(line))
        return
    for column in columns:
        _heading(axes, start / room, column.heading)
        for row, (value, line) in enumerate(zip(column.values, lines, strict=True)):
            axes.text(start / room, row, value, transform=place, size=SIZE, va="center", weight=_weight(line))
        start += column.width + _GAP


def _heading(axes: Axes, x: float, parts: Sequence[str], right: float = 0.0) -> None:
    """Write the lines of a heading above the axes, `right` points right of `x` (a fraction of the axes)."""
    for number, part in enumerate(reversed(parts)):
        axes.annotate(
            part, (x, 1.0), xycoords="axes fraction", xytext=(right, 4 + 9.5 * number), textcoords="offset points",
            size=SIZE, color=style.MUTED, annotation_clip=False,
        )  # fmt: skip


def _weight(line: Line) -> str:
    return "bold" if line.case.baseline else "normal"
