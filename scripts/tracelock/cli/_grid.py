"""Plain tables for the terminal: text to the left, figures to the right, nothing cut but long names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

BAR = "▏"  # heading of a column of bars
GAP = 2  # blanks between columns
LEAST = 12  # of a name that stay, however narrow the terminal


@dataclass(frozen=True)
class Grid:
    """A table; its first column holds names and takes what width the others leave."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    folded: tuple[int, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table for the width at hand."""
        yield self._table(options.max_width)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """Return how wide the table is, so that nothing is padded to the width of the terminal."""
        return Measurement.get(console, options, self._table(options.max_width))

    def _table(self, width: int) -> Table:
        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, GAP, 0, 0))
        table.show_header = any(self.columns)
        shown = self._fitting(width)
        for place, heading in enumerate(self.columns[:shown]):
            figure = self._is_figure(place)
            table.add_column(
                "" if heading == BAR else heading,
                justify="right" if figure and heading != BAR else "left",
                no_wrap=place not in self.folded,
                overflow="fold" if place in self.folded else "ellipsis",
                min_width=self._width(place) if figure else None,
                max_width=max(LEAST, width - self._figures(shown)) if place == 0 and not self.folded else None,
            )
        for row in self.rows:
            table.add_row(*map(Text, row[:shown]))
        return table

    def _fitting(self, width: int) -> int:
        """Return how many columns fit: a figure is shown whole or not at all."""
        shown = len(self.columns)
        while shown > 2 and self._figures(shown) + min(LEAST, self._width(0)) > width:
            shown -= 1
        return shown

    def _figures(self, shown: int) -> int:
        """Return the width that the figures of the first `shown` columns take, gaps included."""
        return sum(self._width(place) + GAP for place in range(1, shown) if self._is_figure(place))

    def _is_figure(self, place: int) -> bool:
        return place > 0 and place not in self.folded

    def _width(self, place: int) -> int:
        return max((len(row[place]) for row in (self.columns, *self.rows)), default=0)


Section: TypeAlias = tuple[str, Grid]  # a title and what stands below it


def grid(columns: Sequence[str], rows: Iterable[Sequence[str]], *, folded: Sequence[int] = ()) -> Grid:
    """Return `rows` under `columns`.

    Parameters
    ----------
    columns
        Headings. The first column holds names, which are cut at the end where the terminal is too narrow for them;
        figures never are: where it is narrower still, the last columns are left out.
    folded
        Places of columns that hold longer text, which takes as many lines as it needs.

    """
    return Grid(tuple(columns), tuple(map(tuple, rows)), tuple(folded))


def more(title: str, shown: int, there: int) -> str:
    """Return `title` of a table of the first `shown` rows, and how many there are."""
    return title if there <= shown else f"{title} (the first {shown} of {there:,}; --top N shows more)"
