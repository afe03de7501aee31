"""The README in Chinese says what the English one says: the same commands, links, code and tables, part by part."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def parts(text: str) -> list[str]:
    """Return the parts of a page, cut at its headings of the second level."""
    fenced = re.sub(r"```.*?```", lambda block: block[0].replace("\n#", "\n\0"), text, flags=re.DOTALL)
    return [part.replace("\0", "#") for part in re.split(r"^## ", fenced, flags=re.MULTILINE)]


def blocks(text: str) -> list[list[str]]:
    """Return the lines of each block without comments."""
    found = re.findall(r"```\w*\n(.*?)```", text, re.DOTALL)
    return [[re.sub(r"(^|\s{2,})# .*$", "", line).rstrip() for line in block.splitlines()] for block in found]


def links(text: str) -> list[str]:
    return sorted(re.findall(r"\]\(([^)]+)\)", text))


def bare(text: str) -> str:
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


def code(text: str) -> set[str]:
    """Return the phrases in backticks that are commands, options, files or settings."""
    return set(re.findall(r"`([^`\n]+)`", bare(text)))


@pytest.fixture(scope="module")
def both() -> list[tuple[str, str]]:
    english, chinese = parts(read("README.md")), parts(read("README.zh.md"))
    assert len(english) == len(chinese)
    return list(zip(english, chinese, strict=True))


def test_commands_and_code_are_the_same(both: list[tuple[str, str]]) -> None:
    for one, other in both:
        assert blocks(one) == blocks(other)


def test_links_lead_to_the_same_pages(both: list[tuple[str, str]]) -> None:
    for one, other in both:
        assert [link for link in links(one) if link != "README.zh.md"] == [
            link for link in links(other) if link != "README.md"
        ]


def test_options_and_figures_are_the_same(both: list[tuple[str, str]]) -> None:
    for one, other in both:
        assert code(one) <= code(other), one.splitlines()[0]
        assert bare(one).count("\n| ") == bare(other).count("\n| ")
        figures = set(re.findall(r"\d+(?:\.\d+)*", bare(one)))
        assert figures <= set(re.findall(r"\d+(?:\.\d+)*", bare(other))), one.splitlines()[0]


def test_no_sentence_was_left_in_english() -> None:
    """Beyond names, the prose has no run of five English words."""
    prose = re.sub(r"`[^`]*`|\]\([^)]*\)", "", bare(read("README.zh.md")))
    assert not re.findall(r"(?:[A-Za-z]+ ){4}[A-Za-z]+", prose)
