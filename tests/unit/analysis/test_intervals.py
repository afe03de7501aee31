"""Sets of time against sets of nanoseconds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies import in_chunks_of

from tracelock.analysis.intervals import (
    EMPTY,
    Intervals,
    clip,
    cover,
    gaps,
    intersect,
    join,
    length,
    lengths_within,
    subtract,
    union,
)

END = 40
rows = st.lists(st.tuples(st.integers(-5, END), st.integers(0, 12)), max_size=12)


def made(pairs: list[tuple[int, int]]) -> Intervals:
    start = np.array([low for low, _ in pairs], np.int64)
    return union(start, start + np.array([size for _, size in pairs], np.int64))


def ticks(held: Intervals) -> set[int]:
    return {tick for low, high in zip(held.start.tolist(), held.end.tolist(), strict=True) for tick in range(low, high)}


def ticks_of(pairs: list[tuple[int, int]]) -> set[int]:
    return {tick for low, size in pairs for tick in range(low, low + size)}


def is_canonical(held: Intervals) -> bool:
    return bool((held.start < held.end).all() and (held.start[1:] > held.end[:-1]).all())


@given(rows, st.integers(1, 5))
def test_union_holds_what_any_row_covers(pairs: list[tuple[int, int]], chunk: int) -> None:
    held = made(pairs)
    with in_chunks_of(chunk):
        assert ticks(made(pairs)) == ticks(held)
    assert ticks(held) == ticks_of(pairs)
    assert is_canonical(held)
    assert length(held) == len(ticks_of(pairs))


@given(rows, rows)
def test_two_sets(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:
    one, other = made(left), made(right)
    for combine, expected in (
        (intersect, ticks(one) & ticks(other)),
        (subtract, ticks(one) - ticks(other)),
        (join, ticks(one) | ticks(other)),
    ):
        assert ticks(combine(one, other)) == expected
        assert is_canonical(combine(one, other))


@given(rows, st.lists(st.booleans(), min_size=12, max_size=12), st.integers(1, 5))
def test_cover_is_the_union_of_the_chosen(pairs: list[tuple[int, int]], chosen: list[bool], chunk: int) -> None:
    start, duration = np.array(pairs, np.int64).reshape(-1, 2).T
    with in_chunks_of(chunk):
        held = cover(start, duration, np.array(chosen[: len(pairs)], np.bool_))
    assert ticks(held) == ticks_of([pair for pair, kept in zip(pairs, chosen, strict=False) if kept])
    assert is_canonical(held)


@given(rows, st.integers(-8, END + 8), st.integers(-8, END + 8))
def test_a_window(pairs: list[tuple[int, int]], low: int, high: int) -> None:
    held, window = made(pairs), set(range(low, high))
    assert ticks(clip(held, low, high)) == ticks(held) & window
    assert ticks(gaps(held, low, high)) == window - ticks(held)
    assert lengths_within(held, np.array([low]), np.array([high])).tolist() == [len(ticks(held) & window)]


def test_rows_that_touch_are_one_interval() -> None:
    held = made([(0, 5), (5, 5), (20, 1)])
    assert (held.start.tolist(), held.end.tolist()) == ([0, 20], [10, 21])


def test_nothing() -> None:
    assert length(EMPTY) == length(join()) == length(made([])) == length(made([(3, 0)])) == 0
    assert length(subtract(EMPTY, made([(0, 3)]))) == 0
    assert lengths_within(EMPTY, np.array([0]), np.array([9])).tolist() == [0]


def test_times_of_the_epoch_stay_exact() -> None:
    start = np.array([1_712_000_000_000_000_001, 1_712_000_000_000_000_004], np.int64)
    assert length(union(start, start + 2)) == 4
