"""Stacked bars by case: the parts of a whole, each with a colour of its own and a hatch for print in grey."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from tracelock.analysis.parts import Labelled
from tracelock.report import style
from tracelock.report.figures._layout import text_width
from tracelock.report.style import Look

LEGEND_LINE = 0.19  # inches
_HANDLE = 0.42


def drawn(parts: Sequence[Labelled], looks: Mapping[str, Look]) -> dict[str, str]:
    """Return key → words of `parts` in the order in which a figure draws them.

    Raises
    ------
    KeyError
        Where a part has no look, so that a part that is new cannot vanish from a figure.
    """
    words = {part.key: part.label for part in parts}
    if missing := words.keys() - looks.keys():
        raise KeyError(f"no look for {', '.join(sorted(missing))}")
    return {key: words[key] for key in looks}


def stack(axes: Axes, row: int, parts: Mapping[str, float], looks: Mapping[str, Look], thickness: float) -> None:
    """Draw the parts of one case from left to right."""
    left = 0.0
    for name, value in parts.items():
        look = looks[name]
        axes.barh(row, value, left=left, height=thickness, color=look.color, hatch=look.hatch, edgecolor=style.PAPER,
                  lw=0.6, zorder=2)  # fmt: skip
        left += value


def shown(all_parts: Sequence[Mapping[str, float]], least: float = 0.004) -> list[str]:
    """Return the names of the parts that are at least `least` of the whole in any case."""
    names = list(all_parts[0]) if all_parts else []
    return [name for name in names if any(parts[name] > least * sum(parts.values()) for parts in all_parts)]


def legend_room(names: Sequence[str], width: float) -> float:
    """Return the height of the legend in inches."""
    return LEGEND_LINE * len(_lines(names, width)) + 0.04


def legend(figure: Figure, names: Mapping[str, str], looks: Mapping[str, Look], top: float) -> None:
    """Draw the legend in lines from left to right, in the order of the stack.

    Parameters
    ----------
    names
        Key of a part → its name.
    top
        Upper edge in inches below the figure's.
    """
    width, height = figure.get_size_inches()
    by_name = {name: key for key, name in names.items()}
    for number, line in enumerate(_lines(list(by_name), width)):
        x = 0.08
        for name in line:
            look = looks[by_name[name]]
            y = height - top - LEGEND_LINE * number - 0.13
            figure.add_artist(
                Rectangle(
                    (x / width, y / height), 0.24 / width, 0.12 / height, transform=figure.transFigure,
                    facecolor=look.color, hatch=look.hatch, edgecolor=style.PAPER, lw=0.4,
                )
            )  # fmt: skip
            figure.text((x + 0.29) / width, (y + 0.06) / height, name, size=8, va="center")
            x += _HANDLE + text_width(name)


def _lines(names: Sequence[str], width: float) -> list[list[str]]:
    lines: list[list[str]] = [[]]
    used = 0.08
    for name in names:
        needed = _HANDLE + text_width(name)
        if lines[-1] and used + needed > width:
            lines.append([])
            used = 0.08
        lines[-1].append(name)
        used += needed
    return lines


def marker_style(look: Look) -> dict[str, Any]:
    """Return how a single mark is drawn: a stroke in its colour, anything else with a rim of paper."""
    stroke = look.marker == "|"
    size, edge, rim = (9.0, 1.6, look.color) if stroke else (5.5, 0.5, style.PAPER)
    return {"marker": look.marker, "ls": "", "color": look.color, "ms": size, "mew": edge, "mec": rim}


def marker_legend(figure: Figure, looks: Mapping[str, Look], top: float) -> None:
    """Draw a legend of markers in lines from left to right; `top` is its upper edge in inches below the figure's."""
    width, height = figure.get_size_inches()
    for number, line in enumerate(_lines(list(looks), width)):
        x, y = 0.16, (height - top - LEGEND_LINE * number - 0.07) / height
        for name in line:
            mark = Line2D([x / width], [y], transform=figure.transFigure, **marker_style(looks[name]))
            figure.add_artist(mark)
            figure.text((x + 0.13) / width, y, name, size=8, va="center")
            x += _HANDLE + text_width(name)
