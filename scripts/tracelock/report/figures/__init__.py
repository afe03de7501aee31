"""The figures of a report. One module a figure, found by its file name.

Each has ``TITLE``; ``caption(comparison)``: what is drawn, with n and how it was measured; ``present(comparison)``:
whether there is anything to draw; and ``draw(comparison, width, notes)`` (inches; with its caption or without), which
returns a matplotlib figure, where there is nothing to draw one that says why.
"""

from __future__ import annotations

import importlib
import io
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, cast

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from tracelock.io import write_bytes
from tracelock.report.style import WIDE, house_style
from tracelock.study.comparison import Comparison

PNG_DPI = 200
ORDER = (
    *("step_time", "path", "scaling", "interaction", "breakdown", "operators", "dataloading", "device", "idle"),
    *("memory", "peak_memory", "overhead"),
)
# The page of a study answers these by its own tables and by two clicks.
NOT_ON_PAGE = ("operators", "idle", "overhead")


_NO_DATE: dict[str, dict[str, None]] = {  # bytes that depend on the content alone
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


class FigureModule(Protocol):
    """What every module of this folder offers."""

    TITLE: str

    def caption(self, comparison: Comparison) -> str:
        """Return what is drawn, with the number of runs and how it was measured."""

    def draw(self, comparison: Comparison, width: float, notes: bool) -> Figure:
        """Return the figure, `width` inches wide, with or without the caption below it."""

    def present(self, comparison: Comparison) -> bool:
        """Return whether there is anything to draw."""


def names() -> list[str]:
    """Return the names of all figures, in the order of the report; those that it does not name come last."""
    found = [module.name for module in pkgutil.iter_modules(__path__) if module.name[0] != "_"]
    return sorted(found, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))


def page_names(comparison: Comparison) -> list[str]:
    """Return the names of the figures that the page of a study shows."""
    return [name for name in names() if name not in NOT_ON_PAGE and load(name).present(comparison)]


def load(name: str) -> FigureModule:
    """Return a figure's module."""
    return cast(FigureModule, importlib.import_module(f"{__name__}.{name}"))


def write_figures(comparison: Comparison, folder: Path) -> list[Path]:
    """Write every figure as SVG and PNG to `folder`, with bytes that depend on the comparison alone."""
    paths = []
    for name in names():
        for kind in ("svg", "png"):
            paths.append(folder / f"{name}.{kind}")
            write_bytes(paths[-1], render(name, comparison, WIDE, kind))
    return paths


def render(name: str, comparison: Comparison, width: float, kind: str, page: bool = False) -> bytes:
    """Return a figure as ``svg``, ``png`` or ``pdf`` (with its fonts embedded).

    Parameters
    ----------
    page
        For a page with type and captions of its own: letters stay text (else they are shapes, the same everywhere),
        and the caption is left out.
    """
    return save(name, lambda wide: load(name).draw(comparison, wide, notes=not page), width, kind, page)


def save(name: str, draw: Callable[[float], Figure], width: float, kind: str, page: bool = False) -> bytes:
    """Return what `draw` gives for a width as ``svg``, ``png`` or ``pdf``, in the house style; see `render`."""
    own: Any = {"svg.fonttype": "none" if page else "path", "svg.hashsalt": f"{name}-{width}", "pdf.fonttype": 42}
    with house_style(), mpl.rc_context(own):
        figure = draw(width)
        FigureCanvasAgg(figure)
        stream = io.BytesIO()
        figure.savefig(stream, format=kind, dpi=PNG_DPI, metadata=_NO_DATE[kind])
    return stream.getvalue()
