"""Loops in sequences of names, against a twin that tries everything."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracelock.analysis.periods import FEWEST_OPERATORS, FEWEST_TURNS, runs


def ids(names: list[int]) -> np.ndarray:
    return np.array(names, np.int32)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 7, 12, 40])
def test_a_loop_of_any_length_is_found_whole(length: int) -> None:
    turn = list(range(length))
    turns = max(FEWEST_TURNS, -(-FEWEST_OPERATORS // length))
    before, after = list(range(100, 107)), list(range(200, 209))
    (found,) = runs(ids(before + turn * turns + after))
    assert (found.first, found.last, found.period) == (7, 7 + length * turns, length)
    assert found.turns == turns


def test_too_few_turns_are_no_loop() -> None:
    assert runs(ids([1, 2, 3, 4, 5, 6, 7] * (FEWEST_TURNS - 1))) == []


def test_a_loop_inside_a_longer_one_is_the_shorter() -> None:
    found = runs(ids(([1] * 40 + [2, 3]) * 10))
    assert {run.period for run in found} == {1}
    assert sum(run.last - run.first for run in found) == 400


@given(st.lists(st.integers(0, 3), max_size=150))
def test_what_is_found_repeats_and_nothing_overlaps(names: list[int]) -> None:
    found = runs(ids(names))
    for run in found:
        part = names[run.first : run.last]
        assert part[run.period :] == part[: -run.period]
        assert run.turns >= FEWEST_TURNS
        assert len(part) >= FEWEST_OPERATORS
    assert all(left.last <= right.first for left, right in itertools.pairwise(found))


@given(st.lists(st.integers(0, 2), max_size=80))
def test_a_single_operator_in_a_row_is_never_missed(names: list[int]) -> None:
    ended, start = [], 0
    for at in range(1, len(names) + 1):
        if at == len(names) or names[at] != names[start]:
            if at - start >= FEWEST_OPERATORS:
                ended.append((start, at))
            start = at
    assert [(run.first, run.last) for run in runs(ids(names)) if run.period == 1] == ended
