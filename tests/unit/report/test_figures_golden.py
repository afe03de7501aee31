"""Golden images: every figure still looks as it was looked at and found good.

What is kept of a figure: its size, its words with digits masked, how many marks of each kind it has, and a grid of how
much ink is where. So a figure may move by a hair and its numbers may change (other tests look at those), but no part of
it can go, come, or lie elsewhere unseen. To keep what is drawn now, after looking at it:

    TRACELOCK_GOLDEN=write python -m pytest tests/unit/report/test_figures_golden.py
"""

from __future__ import annotations

import io
import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import image
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from tracelock.report import style
from tracelock.report.figures import load, names
from tracelock.study.comparison import Comparison

GOLDEN = Path(__file__).parent / "golden.json"
WRITE = os.environ.get("TRACELOCK_GOLDEN") == "write"
ACROSS, LEVELS = 24, "0123456789abcdef"
CASES = [(study, name, width) for study, width in (("demo", style.WIDE), ("gpus", style.NARROW)) for name in names()]
MEAN, WORST = 0.4, 6  # levels of sixteen that a grid may differ by


def look(comparison: Comparison, name: str, width: float) -> dict[str, Any]:
    """Return what is kept of a figure."""
    with style.house_style():
        figure = load(name).draw(comparison, width, notes=True)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        stream = io.BytesIO()
        figure.savefig(stream, format="png", dpi=80)
    stream.seek(0)
    grey = image.imread(stream, format="png")[..., :3].mean(axis=2)
    words = sorted(
        {re.sub(r"\d+(?:[.,]\d+)*", "#", text.get_text()) for text in figure.findobj(Text) if text.get_text().strip()}
    )
    marks = Counter(type(artist).__name__ for axes in figure.axes for artist in (*axes.patches, *axes.lines))
    inches = [round(float(side), 2) for side in figure.get_size_inches()]
    return {"inches": inches, "words": words, "marks": dict(sorted(marks.items())), "grey": grid(grey)}


def grid(grey: np.ndarray) -> list[str]:
    """Return how much ink is in each cell, about square, as a digit: the square root, so that thin lines count."""
    down = max(1, round(ACROSS * grey.shape[0] / grey.shape[1]))
    rows = []
    for band in np.array_split(grey, down, axis=0):
        rows.append(
            "".join(
                LEVELS[round(15 * float(np.sqrt(1 - cell.mean())))] for cell in np.array_split(band, ACROSS, axis=1)
            )
        )
    return rows


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Return in what two looks differ beyond what is allowed."""
    found = [f"{key}: {one[key]} != {other[key]}" for key in ("inches", "words", "marks") if one[key] != other[key]]
    if len(one["grey"]) != len(other["grey"]):
        return [*found, "grey: other shape"]
    levels = [np.array([[LEVELS.index(sign) for sign in row] for row in each["grey"]]) for each in (one, other)]
    apart = np.abs(levels[0] - levels[1])
    if apart.mean() > MEAN or apart.max() > WORST:
        found.append(f"grey: differs by {apart.mean():.2f} levels on the average, {apart.max()} at most")
    return found


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    return dict(json.loads(GOLDEN.read_text(encoding="utf-8"))) if GOLDEN.is_file() else {}


@pytest.mark.parametrize(("study", "name", "width"), CASES)
def test_a_figure_looks_as_it_was_found_good(
    study: str, name: str, width: float, golden: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    seen = look(request.getfixturevalue(study), name, width)
    key = f"{study} {name} {width:g}"
    if WRITE:
        golden[key] = seen
        text = json.dumps(dict(sorted(golden.items())), ensure_ascii=False, indent=1)
        GOLDEN.write_text(text + "\n", encoding="utf-8")
    assert key in golden, "look at it, then keep it: see the top of this file"
    assert not differences(seen, golden[key])


def test_what_is_kept_tells_figures_apart(golden: dict[str, Any]) -> None:
    """Figures differ from each other, from themselves moved by an eighth, and from themselves without a word."""
    shown = {key: each for key, each in golden.items() if key.startswith("gpus")}
    for one in shown:
        for other in shown:
            assert bool(differences(shown[one], shown[other])) is (one != other)
    for each in shown.values():
        moved = {**each, "grey": [row[-ACROSS // 8 :] + row[: -ACROSS // 8] for row in each["grey"]]}
        assert differences(each, moved)
        assert differences(each, {**each, "words": each["words"][1:]})
