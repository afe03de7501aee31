"""How much room everything of a figure with rows needs: a row a case, its settings beside it or above it.

Lengths are inches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from tracelock.report.text import mark, shorten, shorten_all
from tracelock.study.comparison import Comparison
from tracelock.study.overview import Line, chosen, overview, value_text

SIZE = 8.0  # points
MARGIN = 0.08
ROW = 0.27
GAP = 0.14
_BETWEEN = 0.3
_NARROW = 5.0  # below which panels lie below each other
_LONGEST = 22  # characters of a value
_FINE = 720  # dots per inch: letters are not moved to whole dots then
_NOTHING = object()


@dataclass(frozen=True)
class Column:
    """A setting that varies: its heading, a line for each part of the name, and a value for each row."""

    name: str  # of the setting; empty for a column of environments or marks
    heading: tuple[str, ...]
    values: tuple[str, ...]
    width: float


@dataclass(frozen=True)
class Layout:
    """Where everything of a figure with rows lies; lengths in inches."""

    width: float
    columns: tuple[Column, ...] | None  # None: the settings stand above each row, for lack of room beside it
    labels: tuple[tuple[str, ...], ...]  # of each row, where they stand above it
    left: float
    right: float
    row: float
    rows: int
    subtitles: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]
    legend: float

    @property
    def stacked(self) -> bool:
        """Whether panels lie below each other."""
        return len(self.subtitles) > 1 and self.width < _NARROW

    @property
    def across(self) -> int:
        """How many panels lie side by side."""
        return 1 if self.stacked else len(self.subtitles)

    @property
    def legend_top(self) -> float:
        """Upper edge of the room for a legend, below the figure's upper edge."""
        return 0.3 + 0.15 * max(len(part) for part in self.subtitles)

    @property
    def top(self) -> float:
        """Height of what stands above the rows of a panel."""
        headings = max((len(column.heading) for column in self.columns or ()), default=0)
        return self.legend_top + self.legend + headings * 0.135 + 0.06

    @property
    def plot(self) -> float:
        """Height of the rows of a panel."""
        return self.row * self.rows + 0.1

    @property
    def panel(self) -> float:
        """Height of a panel with all that belongs to it."""
        return self.top + self.plot + 0.5

    @property
    def height(self) -> float:
        """Height of the figure."""
        return self.panel * (len(self.subtitles) if self.stacked else 1) + 0.14 * len(self.notes) + 0.04

    @property
    def room(self) -> float:
        """Width of the axes of a panel."""
        return (self.width - self.left - self.right - (self.across - 1) * _BETWEEN) / self.across

    def corner(self, number: int) -> tuple[float, float]:
        """Return left edge and upper edge (from below) of a panel's axes and of the panel."""
        column, row = (0, number) if self.stacked else (number, 0)
        return self.left + column * (self.room + _BETWEEN), self.height - row * self.panel


def all_lines(comparison: Comparison) -> tuple[Line, ...]:
    """Return the lines of the cases that have runs, in the order of all figures and tables."""
    return tuple(line for line in overview(comparison) if line.case.runs)


def measured_lines(comparison: Comparison) -> tuple[Line, ...]:
    """Return those of `all_lines` that figures have rows for."""
    return tuple(chosen(all_lines(comparison)))


def make_layout(
    comparison: Comparison,
    lines: Sequence[Line],
    width: float,
    subtitles: Sequence[str],
    notes: Sequence[str],
    right: Sequence[str],
    legend: float,
) -> Layout:
    """Return the layout of a figure with a row for each of `lines` (see `rows_frame`)."""
    columns = _columns(comparison, lines)
    beside = sum(column.width + GAP for column in columns)
    above = beside > 0.48 * width
    labels = [wrapped(text, width - 0.3) for text in row_labels(comparison, lines)] if above else []
    each = width if width < _NARROW else width / len(subtitles)
    return Layout(
        width=width,
        columns=None if above else tuple(columns),
        labels=tuple(labels),
        left=0.2 if above or not columns else MARGIN + beside,
        right=max((text_width(text, bold=True) for text in right), default=0.0) + 0.14,
        row=ROW + (0.08 + 0.14 * max(map(len, labels)) if above else 0.0),
        rows=len(lines),
        subtitles=tuple(tuple(wrap(text, each, SIZE)) for text in subtitles),
        notes=tuple(part for note in notes for part in wrap(note, width - 2 * MARGIN, SIZE - 1)),
        legend=legend,
    )


def row_labels(comparison: Comparison, lines: Sequence[Line]) -> list[str]:
    """Return a text for each line: in what it differs from the baseline of its environment, the baseline in full."""
    columns = [column for column in _columns(comparison, lines) if column.heading != ("",)]
    baselines = {line.case.environment: line.case.factors for line in lines if line.case.baseline}
    texts = []
    for row, line in enumerate(lines):
        reference = {} if line.case.baseline else baselines.get(line.case.environment, {})
        parts = [
            f"{'_'.join(column.heading)}={column.values[row]}"
            for column in columns
            if column.name == "" or line.case.factors[column.name] != reference.get(column.name, _NOTHING)
        ]
        end = mark(line.case.unlocked) if len(comparison.environments) == 1 else ""
        start = "baseline: " if line.case.baseline else ""
        texts.append(start + (", ".join(parts) or line.case.variant) + end)
    return texts


def wrapped(text: str, width: float) -> tuple[str, ...]:
    """Return `text` in at most two lines of `width` inches."""
    first, *others = wrap(text, 0.9 * width, SIZE)  # bold letters are wider
    most = int(width / text_width("n") * 0.98)
    parts = [part for part in (first, " ".join(others)) if part]
    return tuple(part if text_width(part, bold=True) <= width else shorten(part, most) for part in parts)


def wrap(text: str, width: float, size: float) -> list[str]:
    """Return `text` in lines of at most `width` inches; a longer word has a line of its own."""
    lines: list[str] = []
    for word in text.split():
        if lines and 1.03 * text_width(f"{lines[-1]} {word}", size) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines or [""]


def text_width(text: str, size: float = SIZE, bold: bool = False) -> float:
    """Return the width of `text` in inches."""
    return _measure(text, size, bold)


@cache
def _ruler() -> Any:
    """Return a renderer to measure texts with; a tiny one, for its canvas is never drawn on."""
    return FigureCanvasAgg(Figure(figsize=(0.1, 0.1), dpi=_FINE)).get_renderer()  # type: ignore[no-untyped-call]


@cache
def _measure(text: str, size: float, bold: bool) -> float:
    font = FontProperties(family="DejaVu Sans", size=size, weight="bold" if bold else "normal")
    return float(_ruler().get_text_width_height_descent(text, font, ismath=False)[0]) / _FINE


def _columns(comparison: Comparison, lines: Sequence[Line]) -> list[Column]:
    """Return a column for each setting that varies among the rows, and one for the environment where it varies."""
    columns = []
    if len(comparison.environments) > 1:
        columns.append(_column("", "environment", [line.case.environment + mark(line.case.unlocked) for line in lines]))
    for name in comparison.factors:
        columns.append(_column(name, name, [value_text(line.case.factors[name]) for line in lines]))
    if len(comparison.environments) == 1 and columns and lines and lines[0].case.unlocked:
        columns.append(_column("", "", [mark(line.case.unlocked) for line in lines]))
    return columns


def _column(name: str, title: str, values: Sequence[str]) -> Column:
    heading = tuple(shorten(part, _LONGEST) for part in title.split("_"))
    values = tuple(shorten_all(values, _LONGEST))
    widest = max(*(text_width(part) for part in heading), *(text_width(value, bold=True) for value in values))
    return Column(name, heading, values, widest)
