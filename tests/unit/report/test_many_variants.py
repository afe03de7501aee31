"""A study of more variants than a person can look at: what is shown is chosen, and where the rest is, is said."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from study_tree import StudyTree, Variant

from tracelock.report.figures import load
from tracelock.report.html import write_report
from tracelock.report.summary import print_summary
from tracelock.study import comparison as document
from tracelock.study.compare import compare
from tracelock.study.comparison import Comparison
from tracelock.study.overview import SHOWN, chosen, chosen_text, losses, overview
from tracelock.study.tables import write_tables

FIGURES = ("step_time", "breakdown", "dataloading", "peak_memory", "overhead")


def study(count: int, **more: object) -> StudyTree:
    """Return a study of `count` variants; the n-th takes n ms less than the baseline's 200."""
    variants = [Variant({"level": n}, step_us=200_000 - 1000 * n, scatter=0.0001) for n in range(count)]
    return StudyTree(variants, repeats=2, **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Comparison]:
    """Return results, and the comparison, of a study of 60 variants; runs of one are missing."""
    lost = tuple(("default", "level=30", repeat) for repeat in (1, 2))
    folder = study(60, lost=lost).write(tmp_path_factory.mktemp("many") / "demo")
    found = compare(folder)
    document.write(folder / "comparison.json", found)
    write_tables(found, folder / "tables")
    return folder, found


def levels(lines: list[object]) -> list[int]:
    return [line.case.factors["level"] for line in lines]  # type: ignore[attr-defined]


def test_the_baseline_the_fastest_and_the_slowest_are_chosen(many: tuple[Path, Comparison]) -> None:
    shown = levels(list(chosen(overview(many[1]))))
    assert shown == [0, *range(59, 30, -1), *range(29, 24, -1), 5, 4, 3, 2, 1]  # 30 was not measured
    assert len(shown) == SHOWN


def test_a_study_that_fits_is_shown_whole(tmp_path: Path) -> None:
    found = compare(study(SHOWN).write(tmp_path / "demo"))
    assert chosen(overview(found)) == overview(found)
    assert chosen_text(overview(found)) is None


def test_each_environment_has_its_share(tmp_path: Path) -> None:
    found = compare(study(30, environments=("one", "two")).write(tmp_path / "demo"))
    lines = chosen(overview(found))
    for place in found.environments:
        mine = [line for line in lines if line.case.environment == place.name]
        assert mine[0].case.baseline
        assert len(mine) == SHOWN // 2


@pytest.mark.parametrize("name", FIGURES)
def test_figures_show_the_chosen_and_say_so(many: tuple[Path, Comparison], name: str) -> None:
    for notes in (True, False):
        figure = load(name).draw(many[1], 7.2, notes)
        assert figure.get_size_inches()[1] < 0.27 * SHOWN + 4
        assert "40 of 59 variants are shown" in " ".join(text.get_text() for text in figure.texts)


def test_the_page_shows_the_chosen_and_the_tables_hold_all(many: tuple[Path, Comparison]) -> None:
    folder, _ = many
    write_report(folder, folder / "report.html")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "60 variants in 1 environment" in page
    assert page.count("40 of 60 variants are shown") >= 2
    table = re.search(r'aria-label="Variants">.*?</table>', page, re.DOTALL)
    assert table is not None
    assert table[0].count('data-label="step time"') == SHOWN
    assert "80 of 118 runs, those of the variants above" in page
    with (folder / "tables" / "variants.csv").open(encoding="utf-8", newline="") as stream:
        assert len(list(csv.DictReader(stream))) == 60
    with (folder / "tables" / "runs.csv").open(encoding="utf-8", newline="") as stream:
        assert len(list(csv.DictReader(stream))) == 120  # those that are missing, too


def test_lists_of_what_went_wrong_are_counted_to_their_end(tmp_path: Path) -> None:
    lost = tuple(("default", f"level={n}", 2) for n in range(1, 50))
    folder = study(50, lost=lost).write(tmp_path / "demo")
    document.write(folder / "comparison.json", compare(folder))
    write_report(folder, folder / "report.html")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "49 of 100 runs are missing" in page
    assert "and 9 more, in" in page
    assert len(re.findall(r"level=\d+</span>, run 2: failed", page)) == SHOWN


def test_the_summary_is_as_long_as_a_screen_or_two(
    many: tuple[Path, Comparison], capsys: pytest.CaptureFixture[str]
) -> None:
    print_summary(many[0])
    said = capsys.readouterr().out
    assert "40 of 60 variants are shown" in " ".join(said.split())
    assert len(said.splitlines()) < 3 * SHOWN


def test_runs_of_a_variant_that_failed_for_one_reason_are_told_together(tmp_path: Path) -> None:
    variants = [Variant({"num_workers": n, "batch_size": 8}) for n in range(8)]
    lost = tuple(("default", variant.id, repeat) for variant in variants[1:] for repeat in (1, 2, 3))
    folder = StudyTree(variants, lost=lost).write(tmp_path / "demo")
    found = compare(folder)
    document.write(folder / "comparison.json", found)
    assert [(each.repeats, each.reason) for each in losses(found)] == [((1, 2, 3), "failed")] * 7
    write_report(folder, folder / "report.html")
    page = (folder / "report.html").read_text(encoding="utf-8")
    shown = re.findall(
        r'<span class="id">default/<wbr>num_workers=(\d),<wbr>batch_size=8</span>, runs 1, 2, 3: failed', page
    )
    assert shown == [str(number) for number in range(1, 8)]
    assert (
        page.index("3 further variants with missing runs")
        < page.index("num_workers=5,<wbr>")
        < page.index('<p class="headline">')
    )
