"""Microseconds of any writing become nanoseconds without losing a digit."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_files import counts, document, kernel, op, read_text, render

from tracelock.trace import times
from tracelock.trace.tally import Tally


def exact(text: str) -> int:
    """Return microseconds as nanoseconds, by decimal arithmetic."""
    return int((Decimal(text) * 1000).to_integral_value())


nanoseconds = st.one_of(st.integers(0, 2**43 * 1000 - 1), st.integers(0, 10**7))


@given(st.lists(nanoseconds, min_size=1, max_size=20))
def test_floats_below_two_to_the_43_are_exact(values: list[int]) -> None:
    floats = [float(f"{value // 1000}.{value % 1000:03d}") for value in values]
    assert times.nanoseconds(floats, Tally(), digits_kept=False).tolist() == values


@given(st.lists(st.integers(-(10**15), 9 * 10**15), min_size=1, max_size=20))
def test_integers_are_exact(values: list[int]) -> None:
    assert times.nanoseconds(values, Tally()).tolist() == [value * 1000 for value in values]


@given(st.lists(st.integers(2**43 * 1000, 2**63 - 1001), min_size=1))
def test_larger_fractions_ask_for_the_digits_and_get_them(values: list[int]) -> None:
    texts = [f"{value // 1000}.{value % 1000:03d}" for value in values]
    with pytest.raises(times.NeedDigitsError):
        times.nanoseconds([float(text) for text in texts], Tally(), digits_kept=False)
    assert times.nanoseconds_of_digits([text.encode() for text in texts], Tally()).tolist() == values


decimals = st.decimals(0, 9_000_000_000_000_000, allow_nan=False, places=6)


@given(st.lists(st.one_of(decimals.map(lambda d: f"{d:f}"), decimals.map(lambda d: f"{d:E}")), min_size=1))
def test_digits_of_any_form_are_rounded_to_the_nearest_nanosecond(texts: list[str]) -> None:
    assert times.nanoseconds_of_digits([t.encode() for t in texts], Tally()).tolist() == [exact(t) for t in texts]
    assert times.nanoseconds(texts, Tally()).tolist() == [exact(t) for t in texts]


def test_mixed_values() -> None:
    tally = Tally()
    values = [1, 2.5, "3.25", None, float("inf"), True, [1], 10**30, -1.0005]
    last = times.LATEST
    missing = times.MISSING
    assert times.nanoseconds(values, tally).tolist() == [
        1000,
        2500,
        3250,
        missing,
        missing,
        missing,
        missing,
        last,
        -1000,
    ]
    assert tally.counts() == {"text-timestamp": 1}


def test_ids_of_any_writing() -> None:
    tally = Tally()
    values = ["12", "0x402", "x", None, 2.0, True, 2**63, -(2**63), "007", float("nan")]
    assert times.integers(values, tally).tolist() == [12, 0x402, -1, -1, 2, -1, -1, -(2**63), 7, -1]
    assert tally.counts() == {"huge-number": 1}


def test_addresses_wrap_and_are_never_rounded() -> None:
    assert times.addresses([2**63 + 1, 5, -1]).tolist() == [2**63 + 1, 5, 2**64 - 1]
    assert times.addresses([5, -1]).tolist() == [5, 2**64 - 1]
    assert times.addresses([None, "x", 1.5]).tolist() == [0, 0, 0]
    assert times.addresses([2**63 + 1, 2**64 + 3]).tolist() == [2**63 + 1, 3]


def test_fractional_epoch_times_keep_their_nanoseconds(tmp_path: Path) -> None:
    # A float64 would make 1712195495519689.047 and .053 one time.
    events = [op(0), op(1), kernel(2)]
    rendered = [render(event, "kineto") for event in events]
    for place, digits in enumerate(("1712195495519689.047", "1712195495519689.053", "1712195495519700.5")):
        rendered[place] = rendered[place].replace(f'"ts": {events[place]["ts"]}', f'"ts": {digits}')
    trace = read_text(tmp_path, document(rendered, "kineto"))
    assert trace.host.start.tolist() == [1712195495519689047, 1712195495519689053]
    assert trace.device.start.tolist() == [1712195495519700500]
    assert trace.facts.warnings == ()


def test_the_switch_to_digits_counts_nothing_twice(tmp_path: Path) -> None:
    events = [op(0, ts="1500"), op(1), {"ph": "C", "name": "c", "ts": 1, "pid": 0, "tid": 0}, kernel(2)]
    rendered = [render(event, "compact") for event in events]
    rendered[3] = rendered[3].replace('"ts": 1023', '"ts": 8796093022208.001')
    trace = read_text(tmp_path, document(rendered, "compact"))
    assert counts(trace) == {"text-timestamp": 1}
    assert trace.facts.events == 4
    assert np.array_equal(np.sort(trace.host.start), [1_010_000, 1_500_000])
    assert trace.device.start.tolist() == [8796093022208001]
