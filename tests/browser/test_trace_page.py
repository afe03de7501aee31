"""The page of a trace as a person uses it, in a browser."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from opened import Opened

Visit = Callable[..., Opened]


def test_tables_sort_filter_and_group(visit: Visit, plain: Path) -> None:
    opened = visit(plain)
    box = "[data-table=operators] "
    first = f"{box}tbody tr td:nth-child(2)"
    opened.page.click(f"{box}th:nth-child(2) button")
    down = [int(text) for text in opened.texts(first)]
    assert down == sorted(down, reverse=True)
    opened.page.click(f"{box}th:nth-child(2) button")
    up = [int(text) for text in opened.texts(first)]
    assert up == sorted(down)
    assert opened.page.get_attribute(f"{box}th:nth-child(2)", "aria-sort") == "ascending"
    opened.page.fill(f"{box}input", "relu")
    opened.until("document.querySelectorAll('[data-table=operators] tbody tr').length === 1")
    opened.page.fill(f"{box}input", "")
    opened.page.select_option(f"{box}select >> nth=0", "2")
    assert "call stack" in opened.texts(f"{box}th")
    opened.page.locator(f"{box}tbody td", has_text="train.py(12): loss").first.wait_for()


def test_modules_fold(visit: Visit, plain: Path) -> None:
    opened = visit(plain)
    rows = "[data-table=modules] tbody tr"
    assert opened.count(rows) == 2
    opened.page.click("[data-table=modules] button.fold")
    assert opened.count(rows) == 1


def test_tables_and_figures_are_saved(visit: Visit, plain: Path) -> None:
    opened = visit(plain)
    rows = list(csv.reader(opened.saved("[data-table=operators] button:has-text('CSV')").splitlines()))
    assert rows[0][:3] == ["operator", "calls", "mean on the host (µs)"]
    assert next(row for row in rows if row[0] == "aten::mm")[1:3] == ["8", "50"]
    for figure in ("#timeline", "#flame", "#memory", "#answer figure"):
        text = opened.saved(f"{figure} button:has-text('SVG')")
        assert text.startswith("<svg")
        assert 'xmlns="http://www.w3.org/2000/svg"' in text


def test_the_timeline_opens_at_the_typical_step_and_zooms_and_moves(visit: Visit, plain: Path) -> None:
    opened = visit(plain)
    low, high = opened.view()
    assert low < 10 < 900 < high < 1100
    opened.page.focus("#timeline canvas[tabindex]")
    opened.page.keyboard.press("w")
    narrow = opened.view()
    assert narrow[1] - narrow[0] == pytest.approx(0.6 * (high - low))
    opened.page.keyboard.press("d")
    assert opened.view()[0] > narrow[0]
    opened.page.keyboard.press("0")
    assert opened.view()[1] > 4900
    opened.page.click("text=Slowest step")
    low, high = opened.view()
    assert 1900 < high - low < 2200


def test_the_wheel_zooms_where_the_pointer_is_and_drag_moves(visit: Visit, plain: Path) -> None:
    opened = visit(plain)
    canvas = opened.page.locator("#timeline canvas[tabindex]")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    low, high = opened.view()
    x = box["x"] + box["width"] / 4
    opened.page.mouse.move(x, box["y"] + 80)
    opened.page.keyboard.down("Control")
    opened.page.mouse.wheel(0, -100)
    opened.page.keyboard.up("Control")
    opened.page.wait_for_timeout(100)
    inner = opened.view()
    assert inner[1] - inner[0] < high - low
    assert inner[0] + (inner[1] - inner[0]) / 4 == pytest.approx(low + (high - low) / 4, rel=1e-3, abs=1)
    opened.page.mouse.down()
    opened.page.mouse.move(x + 100, box["y"] + 80, steps=3)
    opened.page.mouse.up()
    assert opened.view()[0] < inner[0]


def test_search_finds_rows_and_tells_of_them(visit: Visit, plain: Path) -> None:
    opened = visit(plain)
    opened.page.fill("#timeline input[type=search]", "sgemm")
    opened.until("document.querySelector('#timeline .tools .note').textContent === '1 of 8'")
    opened.page.press("#timeline input[type=search]", "Enter")
    assert opened.texts("#timeline .tools .note") == ["2 of 8"]
    detail = opened.page.inner_text("#timeline .detail")
    assert "ampere_sgemm_32x32" in detail
    assert "launched by aten::mm" in detail
    opened.page.click("text=Go to its launch")
    assert "cudaLaunchKernel" in opened.page.inner_text("#timeline .detail")


def test_a_row_tells_its_shapes_and_its_stack(visit: Visit, plain: Path) -> None:
    opened = visit(plain)
    opened.page.evaluate("page.timeline.prove('aten::relu', null, 0)")
    detail = opened.page.inner_text("#timeline .detail")
    assert "shapes [[32, 64]]" in detail
    assert "nn.Module: Net_0" in detail
    assert "train.py(40): main" in detail


def test_from_a_finding_one_click_leads_to_its_proof(visit: Visit, plain: Path) -> None:
    opened = visit(plain)
    before = opened.view()
    opened.page.locator("button.place[data-at]").first.click()
    low, high = opened.view()
    assert (low, high) != before
    at = float(opened.page.locator("button.place[data-at]").first.get_attribute("data-at") or "nan")
    assert low <= at <= high


def test_what_is_in_view_is_a_table_too(visit: Visit, plain: Path) -> None:
    opened = visit(plain)
    opened.page.click("text=What is in view, as a table")
    opened.page.wait_for_selector("#timeline tbody tr")
    rows = opened.texts("#timeline tbody tr td:first-child")
    assert any("aten::linear" in row for row in rows)


def test_the_flame_graph_zooms_by_keyboard(visit: Visit, plain: Path) -> None:
    opened = visit(plain)
    opened.page.focus("svg.flame")
    opened.page.keyboard.press("ArrowDown")
    opened.page.keyboard.press("Enter")
    assert opened.page.inner_text("#flame .told")
    opened.page.keyboard.press("Escape")
    assert opened.count("svg.flame .node") > 3


def test_a_hundred_thousand_rows_in_view_are_drawn_in_time(visit: Visit, large: Path) -> None:
    opened = visit(large)
    drawn = opened.page.evaluate("page.timeline.drawn")
    assert drawn["rows"] >= 100_000
    assert drawn["marks"] < 30_000
    assert "rows of one pixel are drawn as one" in opened.page.inner_text("#timeline")
    opened.page.keyboard.press("w")


def test_no_name_runs_or_becomes_markup(visit: Visit, hostile: Path) -> None:
    opened = visit(hostile)
    opened.page.click("text=What is in view, as a table")
    for box in ("operators", "kernels"):
        for place in range(opened.count(f"[data-table={box}] select >> nth=0 >> option")):
            opened.page.select_option(f"[data-table={box}] select >> nth=0", str(place))
    opened.page.fill("#timeline input[type=search]", "img src")
    opened.page.wait_for_timeout(400)
    opened.page.keyboard.press("Enter")
    assert opened.page.evaluate("window.broken === undefined")
    assert opened.count("img") == 0
    assert opened.count("script") == 3
    opened.saved("#timeline button:has-text('SVG')")
    text = opened.saved("[data-table=operators] button:has-text('CSV')")
    assert not any(line.startswith(("=", "+", "@")) for line in text.splitlines())
    assert opened.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.parametrize("look", [{"color_scheme": "light"}, {"color_scheme": "dark"}])
@pytest.mark.parametrize("width", [390, 1200])
def test_nothing_serious_keeps_anybody_out(visit: Visit, plain: Path, width: int, look: dict[str, str]) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    opened = visit(plain, width=width, **look)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    opened.page.click("text=What is in view, as a table")
    found = axe.Axe().run(opened.page, options={"resultTypes": ["violations"]}).response["violations"]
    serious = [each for each in found if each["impact"] in ("serious", "critical")]
    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in serious] == []


def test_it_prints_on_few_pages(visit: Visit, plain: Path) -> None:
    opened = visit(plain)
    printed = opened.page.pdf(format="A4")
    assert printed.startswith(b"%PDF")
    assert printed.count(b"/Type /Page\n") <= 12


def test_paper_is_light_whatever_the_screen_is(visit: Visit, plain: Path) -> None:
    opened = visit(plain, color_scheme="dark")
    assert opened.page.evaluate("page.timeline.painter.colors.paper") == "#15181c"
    opened.page.emulate_media(media="print")
    opened.until("page.timeline.painter.colors.paper === '#fff'")


def test_without_scripts_the_answer_stands(visit: Visit, plain: Path) -> None:
    opened = visit(plain, scripts=False)
    assert opened.page.inner_text(".headline")
    assert opened.page.locator("#answer svg").first.is_visible()
    assert opened.page.locator("noscript p").is_visible()
    assert not opened.page.locator("#timeline-view").is_visible()


def test_ranks_are_chosen(visit: Visit, two_ranks: Path) -> None:
    opened = visit(two_ranks)
    assert opened.page.evaluate("page.timeline.about.steps.length") == 4
    opened.page.select_option("#choose-file", "1")
    opened.until("page.timeline.about.steps.length === 2")
    assert opened.page.locator("#answer [data-file='1']").is_visible()
    assert not opened.page.locator("#answer [data-file='0']").is_visible()
