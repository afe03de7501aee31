"""What a notebook shows of an analysis and of a study: sound HTML, escaped, with the figures of the document."""

from __future__ import annotations

import html.parser
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_tree import StudyTree, Variant

from tracelock.analysis import document
from tracelock.analysis.notebook import UNKNOWN, table, time_text
from tracelock.diagnosis.model import Diagnosed

HOSTILE = "<script>alert(1)</script>\"'&"


class Read(html.parser.HTMLParser):
    """Collects tags and the texts of cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.cells: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1] += data


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    variants = [Variant({"mode": HOSTILE}, loading=0.4), Variant({"mode": "b"}, step_us=60_000)]
    return StudyTree(variants, operators=(HOSTILE, "aten::mm")).write(tmp_path_factory.mktemp("study"))


def test_an_analysis_shows_verdict_parts_and_operators(folder: Path) -> None:
    file = sorted(folder.glob("runs/*/*/1/analysis.json"))[0]
    found = replace(document.read(file, Diagnosed), verdict=f"slow: {HOSTILE}")
    seen = Read(found._repr_html_())
    assert not seen.open
    assert set(seen.tags) <= {"p", "strong", "table", "thead", "tbody", "tr", "th", "td", "div"}
    assert HOSTILE in seen.cells
    parts = vars(found.step.breakdown_us)
    share = f"{100 * parts['dataloader'] / found.step.mean_us:.1f} %"
    assert seen.cells[seen.cells.index("DataLoader") + 2] == share
    assert seen.cells[seen.cells.index("aten::mm") + 1] == "6"


def test_a_study_shows_each_variant_against_the_baseline(folder: Path) -> None:
    pytest.importorskip("pandas")
    import tracelock

    study = tracelock.load_study(folder)
    seen = Read(study._repr_html_())
    assert not seen.open
    assert "script" not in seen.tags
    assert seen.cells.count("baseline") == 1
    (row,) = study.comparison.comparisons
    assert f"×{row.difference.ratio.value:.2f}" in " ".join(seen.cells)


@given(st.lists(st.lists(st.text(), min_size=2, max_size=2), max_size=4))
def test_any_text_stays_a_text(rows: list[list[str]]) -> None:
    seen = Read(table(("a", "b"), rows))
    assert seen.tags.count("td") == 2 * len(rows)
    assert not seen.open


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, UNKNOWN), (0.0, "0 µs"), (0.25, "0.25 µs"), (999.9, "1,000 µs"), (177_592.0, "178 ms"), (5e9, "5,000 s")],
)
def test_times_have_units(value: float | None, shown: str) -> None:
    assert time_text(value) == shown
