"""The page of a study as a person asks it, in a browser."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from opened import Opened
from study_tree import StudyTree, Variant, demo_tree

from tracelock.report.html import render_report
from tracelock.study.compare import compare

Visit = Callable[..., Opened]
HOSTILE = "</script><img src=x onerror=window.broken=1>"


def written(tree: StudyTree, folder: Path) -> Path:
    page = folder / "report.html"
    page.write_text(render_report(compare(tree.write(folder / "results")), {}), encoding="utf-8")
    return page


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(demo_tree(), tmp_path_factory.mktemp("study"))


def test_variants_are_filtered_ordered_and_saved_with_every_run(visit: Visit, study: Path) -> None:
    opened = visit(study)
    assert opened.count(".strip .variant") == 10
    assert opened.count(".strip .run") == 30
    first = opened.page.locator(".strip .variant").first.get_attribute("aria-label") or ""
    assert first.startswith("batch_size=64, num_workers=2, persistent_workers=True")
    opened.page.select_option("#ask select >> nth=1", "=0")
    assert opened.count(".strip .variant") == 2
    rows = list(csv.reader(opened.saved("#ask .tools button:has-text('CSV')").splitlines()))
    assert len(rows) == 1 + 2 * 3
    assert rows[0][:5] == ["environment", "batch_size", "num_workers", "persistent_workers", "repeat"]
    assert opened.saved("#ask .tools button:has-text('SVG')").startswith("<svg")


def test_two_variants_stand_side_by_side(visit: Visit, study: Path) -> None:
    opened = visit(study)
    opened.page.click(".strip .chosen >> nth=0")
    assert "Fewer than two" in opened.page.inner_text("#ask .pair")
    opened.page.locator(".strip .variant:not(.chosen)").nth(3).focus()
    opened.page.keyboard.press("Enter")
    told = opened.page.inner_text("#ask .pair")
    assert "What changed from A to B" in told
    assert "num_workers" in told
    assert "DataLoader" in told
    assert "aten::conv2d" in told


def test_effects_stand_below(visit: Visit, study: Path) -> None:
    told = visit(study).page.inner_text("#ask")
    assert "What each factor does" in told
    assert "Factors that depend on each other" in told


def test_tables_of_the_page_sort_by_their_numbers(visit: Visit, study: Path) -> None:
    opened = visit(study)
    cells = "#variants table >> nth=0 >> tbody tr td[data-label='step time'] span"
    opened.page.click("#variants th button:has-text('step')")
    times = [float(text.split("\N{NO-BREAK SPACE}")[0]) for text in opened.texts(cells)]
    assert times == sorted(times, reverse=True)
    assert len(opened.saved("#variants button.csv").splitlines()) == 11


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1200, "light")])
def test_nothing_serious_keeps_anybody_out(visit: Visit, study: Path, width: int, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    opened = visit(study, width=width, color_scheme=scheme)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    found = axe.Axe().run(opened.page, options={"resultTypes": ["violations"]}).response["violations"]
    serious = [each for each in found if each["impact"] in ("serious", "critical")]
    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in serious] == []


def test_no_name_runs(visit: Visit, tmp_path: Path) -> None:
    variants = [Variant({"mode": HOSTILE}, loading=0.5), Variant({"mode": "=1+1"}, step_us=50_000, loading=0.01)]
    opened = visit(written(StudyTree(variants, experiment=HOSTILE, operators=(HOSTILE, "__proto__")), tmp_path))
    opened.page.click(".strip .variant >> nth=0")
    assert opened.page.evaluate("window.broken === undefined")
    assert opened.count("img") == 0
    assert HOSTILE in opened.page.inner_text("#ask")


def test_without_scripts_the_report_is_whole(visit: Visit, study: Path) -> None:
    opened = visit(study, scripts=False)
    assert opened.page.inner_text(".headline")
    assert not opened.page.locator("#ask").is_visible()
    assert opened.page.locator("#variants tbody tr").count() == 10


def test_kernels_that_appeared_or_are_gone_are_told_and_renamed_ones_are_not(visit: Visit, tmp_path: Path) -> None:
    def kernel(name: str, total: float) -> dict[str, object]:
        return {"name": name, "calls": 3, "total_us": total, "mean_us": total / 3, "min_us": 1.0, "max_us": total}

    folder = tmp_path / "results"
    StudyTree([Variant({"n": 0}), Variant({"n": 1}, step_us=50_000.0)], repeats=1, gpus=1).write(folder)
    kernels = {
        "n=0": [kernel("triton_poi_fused_add_0d1d2", 300.0), kernel("void at::vanished<float>", 600.0)],
        "n=1": [kernel("triton_poi_fused_add_3", 330.0), kernel(HOSTILE, 900.0)],
    }
    for variant, rows in kernels.items():
        file = folder / "runs" / "default" / variant / "1" / "analysis.json"
        file.write_text(json.dumps({**json.loads(file.read_text(encoding="utf-8")), "kernels": rows}), encoding="utf-8")
    page = tmp_path / "report.html"
    page.write_text(render_report(compare(folder), {}), encoding="utf-8")
    opened = visit(page)
    table = opened.page.locator("#ask .pair div:has(> h4:text-is('Kernels')) , #ask .pair h4:text-is('Kernels') + div")
    rows = {row.split("\t")[0]: row for row in table.inner_text().splitlines() if "\t" in row}
    assert "gone in B" in rows["void at::vanished<float>"]
    assert "new in B" in rows[HOSTILE]
    assert "both" in next(row for name, row in rows.items() if name.startswith("triton_poi_fused_add"))
