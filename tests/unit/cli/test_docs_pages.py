"""The pages that are made from the code are up to date, and every link between pages leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tracelock.cli._pages import pages, with_settings


@pytest.mark.parametrize(("path", "text"), [pytest.param(*page, id=page[0].name) for page in pages()])
def test_made_pages_are_up_to_date(path: Path, text: str) -> None:
    assert path.read_text(encoding="utf-8") == text, "make docs writes it"


def test_an_outdated_table_is_made_anew() -> None:
    text = "before\n<!-- settings: mlp -->\n| old |\n| --- |\n\nafter\n"
    made = with_settings(text)
    assert "| old |" not in made
    assert "| `item_cost` | 10 |" in made
    assert made.startswith("before\n")
    assert made.endswith("\n\nafter\n")


def test_links_between_pages_lead_somewhere(root: Path) -> None:
    for page in (root / "README.md", *sorted((root / "docs").glob("*.md"))):
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
