"""The frame of figures whose rows are named things (changes, operators, pairs): the name above each row's marks.

Lengths are inches. Rows run downwards from y = 0, one apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tracelock.report import style
from tracelock.report.figures._frame import beside, notes_below, titles
from tracelock.report.figures._layout import MARGIN, SIZE, text_width, wrap, wrapped

_MARKS = 0.26
_LINE = 0.14
_PAD = 0.05


@dataclass(frozen=True)
class Named:
    """A figure with one axes."""

    figure: Figure
    axes: Axes
    bar: float  # thickness of a bar, in rows
    legend_top: float  # upper edge of the room for a legend, below the figure's upper edge
    _offset: float

    def at(self, row: int) -> float:
        """Return where the marks of a row lie."""
        return row + self._offset


def named_frame(
    width: float,
    title: tuple[str, str],
    names: Sequence[str],
    notes: Sequence[str],
    right: Sequence[str],
    legend: float = 0.0,
) -> Named:
    """Return a figure with a row for each of `names`, the text of `right` at the end of each.

    Parameters
    ----------
    title
        Title and subtitle.
    legend
        Room for a legend between the titles and the rows.
    """
    below = [part for note in notes for part in wrap(note, width - 2 * MARGIN, SIZE - 1)]
    under = wrap(title[1], width - 2 * MARGIN, SIZE)
    labels = [wrapped(name, width - 2 * MARGIN) for name in names]
    label = _PAD + _LINE * max(map(len, labels))
    row, legend_top = label + _MARKS, 0.3 + 0.15 * len(under)
    top, plot = legend_top + legend + 0.04, (label + _MARKS) * len(names)
    total = top + plot + 0.5 + 0.14 * len(below) + 0.04
    end = max(text_width(text, bold=True) for text in right) + 0.18
    figure = Figure(figsize=(width, total))
    titles(figure, title[0], under)
    notes_below(figure, below)
    left = 2 * MARGIN
    axes = figure.add_axes((left / width, (total - top - plot) / total, (width - left - end) / width, plot / total))
    axes.set_yticks([])
    axes.set_ylim(len(names) - 0.5, -0.5)
    offset = (label + _MARKS / 2) / row - 0.5
    for number, (lines, text) in enumerate(zip(labels, right, strict=True)):
        ceiling = total - top - row * number - 0.6 * _PAD
        box = {"facecolor": style.PAPER, "edgecolor": "none", "pad": 0.5}
        figure.text(MARGIN / width, ceiling / total, "\n".join(lines), size=SIZE, va="top", linespacing=1.1, bbox=box)
        beside(axes, number + offset, text)
        if number:
            axes.axhline(number - 0.5, color=style.GRID, lw=0.5, zorder=0)
    return Named(figure, axes, 0.16 / row, legend_top, offset)
