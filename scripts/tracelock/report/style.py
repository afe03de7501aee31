"""How figures look: colours that colour-blind readers tell apart (Okabe and Ito), hatches for print in grey, type.

The report replaces the colours in a figure's SVG by variables of its style sheet, so that a figure follows dark mode.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl

PAPER = "#fffffe"
INK = "#1f2329"
MUTED = "#5c6571"
GRID = "#dfe3e8"

WIDE = 7.2  # inches: a page of A4 between its margins, or the column of the report
NARROW = 3.9  # inches: a phone held upright

BLUE, SKY, GREEN, YELLOW = "#0072B2", "#56B4E9", "#009E73", "#F0E442"
ORANGE, VERMILION, PURPLE, GREY = "#E69F00", "#D55E00", "#CC79A7", "#d3d8de"
PAGE = {
    PAPER: "paper",
    INK: "ink",
    MUTED: "muted",
    GRID: "grid",
    BLUE: "blue",
    SKY: "sky",
    GREEN: "green",
    YELLOW: "yellow",
    ORANGE: "orange",
    VERMILION: "vermilion",
    PURPLE: "purple",
    GREY: "grey",
}


@dataclass(frozen=True)
class Look:
    """How one kind of thing is drawn."""

    color: str
    hatch: str = ""
    marker: str = "o"


VERDICTS = {
    "baseline": Look(INK, marker="D"),
    "faster": Look(BLUE, marker="<"),
    "slower": Look(VERMILION, marker=">"),
    "no difference": Look(MUTED, marker="|"),
    "unclear": Look(MUTED, marker="o"),
    "not judged": Look(MUTED, marker="s"),
}
RC: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same on every machine
    "font.size": 8.5,
    "text.color": INK,
    "text.parse_math": False,  # names may hold dollars
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.grid.axis": "x",
    "axes.axisbelow": True,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.unicode_minus": False,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "ytick.left": False,
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "hatch.linewidth": 0.9,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.fonttype": "path",
    "svg.hashsalt": "tracelock",
}


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in the house style inside the block, whatever a user's matplotlibrc says."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(RC)
        yield
