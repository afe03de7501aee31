"""Figures as a person reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracelock.report import text
from tracelock.study.stats import Interval


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, "–"), (0.0, "0 µs"), (0.25, "0.250 µs"), (12.34, "12.3 µs"), (999.4, "999 µs"), (177_592.0, "178 ms"),
     (1_500_000.0, "1.50 s"), (7_200_000_000.0, "7,200 s")],
)  # fmt: skip
def test_time(value: float | None, expected: str) -> None:
    assert text.time(value).replace("\N{NO-BREAK SPACE}", " ") == expected


@pytest.mark.parametrize(("value", "expected"), [(None, "–"), (0, "0 B"), (999, "999 B"), (1_250_000_000, "1.25 GB")])
def test_size(value: int | None, expected: str) -> None:
    assert text.size(value).replace("\N{NO-BREAK SPACE}", " ") == expected


@pytest.mark.parametrize(
    ("share", "expected"), [(None, "–"), (0.0, "0 %"), (0.008, "0.8 %"), (0.334, "33 %"), (1, "100 %")]
)
def test_percent(share: float | None, expected: str) -> None:
    assert text.percent(share).replace("\N{NO-BREAK SPACE}", " ") == expected


def test_what_a_ratio_saves() -> None:
    assert text.saved(Interval(0.56, 0.55, 0.58)).replace("\N{NO-BREAK SPACE}", " ") == "44 % less time (42–45 %)"


@given(st.floats(1e-6, 1e15))
def test_digits_keep_three_significant_digits(value: float) -> None:
    shown = text.digits(value)
    assert float(shown.replace(",", "")) == pytest.approx(value, rel=0.0051)
    assert "e" not in shown


@given(st.text(max_size=60), st.integers(1, 30))
def test_shorten_keeps_both_ends(words: str, most: int) -> None:
    short = text.shorten(words, most)
    assert len(short) <= max(most, 1)
    assert short == words if len(words) <= most else "…" in short


@given(st.lists(st.text("ab/", max_size=40), min_size=1, max_size=5), st.integers(6, 20))
def test_shortened_texts_fit(texts: list[str], most: int) -> None:
    assert all(len(short) <= most for short in text.shorten_all(texts, most))


def test_shortened_paths_still_differ() -> None:
    paths = [f"/data/some/very/long/place/number-{n}/and/more/of/that" for n in range(12)]
    short = text.shorten_all(paths, 20)
    assert len(set(short)) == 12
    assert all("number" in one or str(n) in one for n, one in enumerate(short))
