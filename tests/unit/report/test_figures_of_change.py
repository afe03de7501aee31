"""Figures of what changes: marks lie where a calculation by hand puts them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from study_tree import StudyTree, Variant

from tracelock.report import style
from tracelock.report.figures import load, page_names
from tracelock.report.figures.operators import changed
from tracelock.report.figures.scaling import panels
from tracelock.study.compare import compare
from tracelock.study.comparison import Comparison
from tracelock.study.records import Edge, RemedyPath


def drawn(comparison: Comparison, name: str) -> Figure:
    with style.house_style():
        figure = load(name).draw(comparison, style.WIDE, notes=True)
        FigureCanvasAgg(figure).draw()
    return figure


def edge(source: str, target: str, ratio: float, **settings: Any) -> Edge:
    return Edge(
        source, target, "dataloader-bound", settings, ratio, ratio - 0.1, ratio + 0.1, "faster", metric="step time"
    )


def test_the_path_is_the_product_of_its_steps(demo: Comparison) -> None:
    edges = (edge("base", "one", 0.5, num_workers=2), edge("one", "two", 0.8, prefetch_factor=4))
    figure = drawn(replace(demo, remedies=RemedyPath(edges, (), "two", {"num_workers": 2})), "path")
    assert [bar.get_width() for bar in figure.axes[0].patches] == pytest.approx([1.0, 0.5, 0.4])
    whiskers = [line.get_xdata() for line in figure.axes[0].get_lines() if line.get_marker() == "|"]
    assert [tuple(ends) for ends in whiskers] == [pytest.approx((0.4, 0.6)), pytest.approx((0.35, 0.45))]
    assert "product of 2 steps" in load("path").caption(replace(demo, remedies=RemedyPath(edges, (), "two", {})))


def test_without_anything_faster_there_is_no_path(single: Comparison) -> None:
    assert not load("path").present(single)


def grid_of(tmp_path: Path, **times: float) -> Comparison:
    """Return a study of two factors, a and b, of two values each, with the step times that are given."""
    cases = {"plain": {"a": 0, "b": 0}, "a": {"a": 1, "b": 0}, "b": {"a": 0, "b": 1}, "both": {"a": 1, "b": 1}}
    variants = [Variant(cases[name], step_us=time, scatter=0.0) for name, time in times.items()]
    return compare(StudyTree(variants).write(tmp_path))


def test_an_interaction_shows_each_alone_what_is_expected_and_what_is_measured(tmp_path: Path) -> None:
    grid = grid_of(tmp_path, plain=100_000.0, a=80_000.0, b=50_000.0, both=50_000.0)
    axes = drawn(grid, "interaction").axes[0]
    marks = {line.get_marker(): float(line.get_xdata()[0]) for line in axes.get_lines() if len(line.get_xdata()) == 1}
    assert marks == pytest.approx({"<": 0.8, ">": 0.5, "|": 0.4, "D": 0.5})


def test_curves_join_variants_that_differ_in_one_factor_alone(demo: Comparison) -> None:
    (panel,) = panels(demo)  # batch_size has two values, persistent_workers none that is a number
    assert panel.factor == "num_workers"
    assert [curve.x for curve in panel.curves] == [(0.0, 1.0, 2.0)] * 2
    for curve, batch in zip(panel.curves, (32, 64), strict=True):
        cases = [
            next(
                c
                for c in demo.cases
                if c.factors == {"batch_size": batch, "num_workers": n, "persistent_workers": False}
            )
            for n in (0, 1, 2)
        ]
        assert [one.value for one in curve.y] == pytest.approx([1e6 / case.sample.value for case in cases])
    lines = [line for line in drawn(demo, "scaling").axes[0].get_lines() if line.get_linestyle() in ("-", "--")]
    assert len(lines) == 2


def test_curves_that_are_left_out_are_counted(tmp_path: Path) -> None:
    variants = [
        Variant({"n": n, "kind": f"k{kind}"}, step_us=1000.0 * (n + kind)) for kind in range(6) for n in (1, 4, 16)
    ]
    study = compare(StudyTree(variants, repeats=1).write(tmp_path))
    (panel,) = panels(study)
    assert (len(panel.curves), panel.left) == (4, 2)
    assert "2 curves left out" in load("scaling").caption(study)
    assert drawn(study, "scaling").axes[0].get_xscale() == "log"


def test_idle_time_by_cause_sums_to_what_the_traces_say(gpus: Comparison) -> None:
    axes = drawn(gpus, "idle").axes[0]
    ends: dict[int, float] = {}
    for bar in axes.patches:
        row = round(bar.get_y() + bar.get_height() / 2)
        ends[row] = max(ends.get(row, 0.0), bar.get_x() + bar.get_width())
    base = next(case for case in gpus.cases if case.baseline)
    step = sum(vars(base.explained.breakdown).values())
    assert ends[0] == pytest.approx((0.42 + 0.15) * step / 1000)  # the share that study_tree leaves the GPU idle


def test_operators_are_ordered_by_their_change_and_tell_which_appeared(tmp_path: Path) -> None:
    folder = StudyTree([Variant({"n": 0}), Variant({"n": 2}, step_us=50_000)], repeats=1).write(tmp_path)
    file = folder / "runs" / "default" / "n=2" / "1" / "analysis.json"
    analysis = json.loads(file.read_text(encoding="utf-8"))
    analysis["operators"][0]["name"] = "aten::fused"
    file.write_text(json.dumps(analysis), encoding="utf-8")
    study = compare(folder)
    before, after = study.cases
    rows = changed(study, before, after)
    assert [abs(row.change) for row in rows] == sorted((abs(row.change) for row in rows), reverse=True)
    told = {row.name: (row.before is None, row.after is None) for row in rows}
    assert told["aten::conv2d"] == (False, True)
    assert told["aten::fused"] == (True, False)
    own = {row.name: row.self_cpu_us for row in study.operators_of(before)}
    assert next(row for row in rows if row.name == "aten::mm").before == pytest.approx(own["aten::mm"] / 32)
    words = " ".join(text.get_text() for text in drawn(study, "operators").axes[0].texts)
    assert re.search(r"µs gone|ms gone", words)
    assert "appeared" in words


def test_the_overhead_is_that_of_the_runs(demo: Comparison) -> None:
    axes = drawn(demo, "overhead").axes[0]
    found = [float(line.get_xdata()[0]) for line in axes.get_lines() if line.get_marker() in ("D", "o")]
    assert sorted(found) == pytest.approx(sorted(case.profiler_overhead for case in demo.cases))


def test_the_page_shows_no_figure_that_its_tables_answer_better(demo: Comparison) -> None:
    assert page_names(demo) == [
        "step_time", "path", "scaling", "interaction", "breakdown", "dataloading", "memory", "peak_memory",
    ]  # fmt: skip
