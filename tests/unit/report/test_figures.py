"""Every figure of every study: it is drawn, says what it shows, stays within its paper, and has stable bytes."""

from __future__ import annotations

import io
import itertools
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from matplotlib import image
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from tracelock.report import style
from tracelock.report.figures import load, names, render, write_figures
from tracelock.report.figures._layout import measured_lines
from tracelock.study.comparison import Comparison

STUDIES = ("demo", "gpus", "single", "hostile", "forty")
WIDTHS = (style.WIDE, style.NARROW)


def drawn(comparison: Comparison, name: str, width: float) -> Figure:
    with style.house_style():
        figure = load(name).draw(comparison, width, notes=True)
        FigureCanvasAgg(figure).draw()
    return figure


def texts(figure: Figure) -> list[Text]:
    """Return the texts that are drawn: matplotlib keeps those of ticks outside an axis, too."""
    outside = set()
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        ticks = [tick for tick in axis.get_major_ticks() if not low <= tick.get_loc() <= high]
        outside |= {label for tick in ticks for label in (tick.label1, tick.label2)}
    found = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    return [text for text in found if text not in outside]


def test_figures_are_found_by_name() -> None:
    assert names() == [
        *("step_time", "path", "scaling", "interaction", "breakdown", "operators", "dataloading", "device", "idle"),
        *("memory", "peak_memory", "overhead"),
    ]


@pytest.mark.parametrize("study", STUDIES)
@pytest.mark.parametrize("name", names())
def test_texts_stay_within_the_figure_and_do_not_overlap(study: str, name: str, request: pytest.FixtureRequest) -> None:
    comparison = request.getfixturevalue(study)
    for width in WIDTHS:
        figure = drawn(comparison, name, width)
        shown = texts(figure)
        x0, y0, x1, y1 = np.array([text.get_window_extent().extents for text in shown]).T
        for text in np.flatnonzero(
            (x0 < -1) | (y0 < -1) | (x1 > figure.bbox.width + 1) | (y1 > figure.bbox.height + 1)
        ):
            pytest.fail(f"{shown[text].get_text()!r} leaves the figure at {width} inches")
        across = np.minimum.outer(x1, x1) - np.maximum.outer(x0, x0)
        down = np.minimum.outer(y1, y1) - np.maximum.outer(y0, y0)
        for one, other in np.argwhere(np.triu((across > 2) & (down > 3), k=1)):
            pytest.fail(f"{shown[one].get_text()!r} over {shown[other].get_text()!r} at {width} inches")


@pytest.mark.parametrize("study", ["gpus", "single"])
def test_bytes_depend_on_the_comparison_alone(study: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    comparison = request.getfixturevalue(study)
    for folder in ("one", "two"):
        write_figures(comparison, tmp_path / folder)
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert files == sorted(f"{name}.{kind}" for name in names() for kind in ("svg", "png"))
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


@pytest.mark.parametrize("study", STUDIES)
@pytest.mark.parametrize("name", names())
def test_svg_is_sound_and_asks_for_nothing_and_has_no_date(
    study: str, name: str, request: pytest.FixtureRequest
) -> None:
    for page in (False, True):
        svg = render(name, request.getfixturevalue(study), style.WIDE, "svg", page).decode()
        root = ET.fromstring(svg)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert not re.search(r"(?:href|src)=\"(?!#)", svg)
        assert "dc:date" not in svg
        assert "<script" not in svg


def test_png_is_fit_for_print(demo: Comparison) -> None:
    pixels = image.imread(io.BytesIO(render("step_time", demo, style.WIDE, "png")), format="png")
    assert pixels.shape[1] == round(style.WIDE * 200)


def test_what_is_not_known_is_said(single: Comparison) -> None:
    words = {name: " ".join(text.get_text() for text in texts(drawn(single, name, style.WIDE))) for name in names()}
    assert [name for name in names() if not load(name).present(single)] == [
        "path", "scaling", "interaction", "breakdown", "operators", "dataloading", "device", "idle", "memory",
    ]  # fmt: skip
    for name in ("breakdown", "dataloading", "memory"):
        assert "Not known" in words[name]
    assert "1 run a variant" in words["step_time"]


@pytest.mark.parametrize("name", names())
def test_captions_and_axes_have_units_and_n(demo: Comparison, name: str) -> None:
    figure = drawn(demo, name, style.WIDE)
    labels = [axes.get_xlabel() for axes in figure.axes if axes.get_xlabel()]
    if load(name).present(demo):
        assert labels
        assert all(re.search(r"\(.+\)$", label) for label in labels)
    if name in ("step_time", "dataloading"):
        assert re.search(r"3 runs|n = 3", load(name).caption(demo))


def test_unlocked_environments_are_marked_in_every_figure(gpus: Comparison) -> None:
    for name in names():
        shown = [text.get_text() for text in texts(drawn(gpus, name, style.WIDE))]
        assert any("‡ UNLOCKED environment: b differs from its lock in 1 place" in text for text in shown), name


def test_rows_are_sorted_by_speed_within_an_environment_after_its_baseline(gpus: Comparison) -> None:
    lines = measured_lines(gpus)
    assert [line.case.environment for line in lines] == ["a"] * 10 + ["b"] * 10
    for part in (lines[:10], lines[10:]):
        assert part[0].case.baseline
        ratios = [line.against.difference.ratio.value for line in part[1:]]
        assert ratios == sorted(ratios)


def test_every_run_is_a_point(demo: Comparison) -> None:
    figure = drawn(demo, "step_time", style.WIDE)
    points = [line for line in figure.axes[0].get_lines() if line.get_markerfacecolor() == "none"]
    assert sum(len(line.get_xdata()) for line in points) == len(demo.runs) == 30
    shown = sorted(float(x) for line in points for x in line.get_xdata())
    assert shown == pytest.approx(sorted(run.step_us * run.steps / run.samples / 1000 for run in demo.runs))


def test_bars_of_the_breakdown_sum_to_the_step(demo: Comparison) -> None:
    axes = drawn(demo, "breakdown", style.WIDE).axes[0]
    ends: dict[int, float] = {}
    for bar in axes.patches:
        row = round(bar.get_y() + bar.get_height() / 2)
        ends[row] = max(ends.get(row, 0.0), bar.get_x() + bar.get_width())
    for row, line in enumerate(measured_lines(demo)):
        assert ends[row] == pytest.approx(sum(vars(line.case.explained.breakdown).values()) / 1000)


def luminance(color: str) -> float:
    """Return the relative luminance of WCAG 2."""
    parts = [int(color[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def test_texts_have_contrast() -> None:
    for color in (style.INK, style.MUTED):
        assert (luminance(style.PAPER) + 0.05) / (luminance(color) + 0.05) > 4.5


@pytest.mark.parametrize("name", ["breakdown", "device", "idle"])
def test_parts_differ_without_colour(name: str) -> None:
    """Any two parts, which may touch where those between them are absent, differ in hatch or clearly in grey."""
    looks = list(load(name).LOOKS.values())
    for one, other in itertools.combinations(looks, 2):
        high, low = sorted((luminance(one.color), luminance(other.color)), reverse=True)
        assert one.hatch != other.hatch or (high + 0.05) / (low + 0.05) > 1.6


def test_verdicts_differ_without_colour() -> None:
    assert len({look.marker for look in style.VERDICTS.values()}) == len(style.VERDICTS)


def test_memory_curves_keep_their_peaks(gpus: Comparison) -> None:
    figure = drawn(gpus, "memory", style.WIDE)
    peaks = [max(line.get_ydata()) for axes in figure.axes for line in axes.get_lines()]
    highest = max(max(curve.allocated_bytes) for case in gpus.cases for curve in case.explained.memory)
    assert len(peaks) == 4
    assert max(peaks) == pytest.approx(highest / 1e6)
