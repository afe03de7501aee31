"""Figures as the terminal shows them."""

from __future__ import annotations

import pytest

from tracelock.cli import _format as fmt


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "–"),
        (0, "0 µs"),
        (0.0004, "< 1 ns"),
        (0.5, "500.0 ns"),
        (2, "2.00 µs"),
        (85.25, "85.2 µs"),
        (177_592.17, "177.6 ms"),
        (1_285_173.7, "1.29 s"),
        (43_348_556, "43.3 s"),
        (-1500, "-1.50 ms"),
    ],
)
def test_times(value: float | None, expected: str) -> None:
    assert fmt.time(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, "–"), (0, "0 B"), (16, "16 B"), (1024, "1.00 KiB"), (2_791_636_480, "2.60 GiB"), (-2048, "-2.00 KiB")],
)
def test_sizes_are_powers_of_1024_and_say_so(value: float | None, expected: str) -> None:
    assert fmt.size(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(None, "–"), (10.06e9, "10.1 GB/s"), (422_300, "422.3 kB/s"), (12, "12 B/s")]
)
def test_rates_are_powers_of_1000(value: float | None, expected: str) -> None:
    assert fmt.rate(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, "–"), (0.0, "0.0 %"), (0.0003, "< 0.1 %"), (0.3337, "33.4 %"), (1.0, "100.0 %")],
)
def test_shares(value: float | None, expected: str) -> None:
    assert fmt.share(value) == expected


@pytest.mark.parametrize(("value", "expected"), [(None, "–"), (8772, "8,772"), (52.5, "52.5"), (1234.5, "1,234")])
def test_counts(value: float | None, expected: str) -> None:
    assert fmt.count(value) == expected


@pytest.mark.parametrize(
    ("number", "word", "expected"), [(1, "step", "1 step"), (6, "step", "6 steps"), (2000, "launch", "2,000 launches")]
)
def test_plurals(number: int, word: str, expected: str) -> None:
    assert fmt.plural(number, word) == expected


@pytest.mark.parametrize(("part", "expected"), [(0, ""), (1e-9, "▏"), (0.5, "█" * 10), (1, "█" * 20), (1.1, "█" * 20)])
def test_bars(part: float, expected: str) -> None:
    assert fmt.bar(part) == expected


def test_kernels_lose_what_all_share() -> None:
    name = "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float>"
    assert fmt.kernel(name) == "CatArrayBatchedCopy<float>"
