"""Figures of a study for papers and slides: sizes by use, formats by choice, captions beside them."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

from tracelock.io import write_bytes, write_text
from tracelock.report.figures import load, names, render
from tracelock.study.comparison import Comparison

SIZES = {"column": 3.9, "page": 7.2, "slide": 10.0}  # inches
FORMATS = ("svg", "pdf", "png")
CAPTIONS = "captions.txt"


def export_figures(comparison: Comparison, folder: Path, size: str, formats: Sequence[str]) -> list[Path]:
    """Write the figures that have something to show, and their captions as text; return what was written.

    Parameters
    ----------
    size
        One of SIZES: the column of a paper, a page between its margins, a slide.
    formats
        Of FORMATS. Letters are shapes in SVG and embedded fonts in PDF, so that a figure looks the same everywhere.
    """
    chosen = [name for name in names() if load(name).present(comparison)]
    paths = []
    for name in chosen:
        for kind in formats:
            paths.append(folder / f"{name}-{size}.{kind}")
            write_bytes(paths[-1], render(name, comparison, SIZES[size], kind))
    paths.append(folder / CAPTIONS)
    write_text(paths[-1], "\n".join(caption_text(comparison, name) for name in chosen))
    return paths


def caption_text(comparison: Comparison, name: str) -> str:
    """Return a figure's caption with what was measured on: n and intervals are in the figure's own words."""
    figure = load(name)
    devices = sorted({run.device_name or run.device for run in comparison.runs})
    torch = sorted({run.torch for run in comparison.runs})
    made = f"{comparison.experiment}: {len(comparison.runs)} runs on {', '.join(devices)}, torch {', '.join(torch)}."
    return textwrap.fill(f"{name}: {figure.TITLE}. {figure.caption(comparison)} {made}", 100) + "\n"
