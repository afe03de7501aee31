"""Paths of calls for other tools: every nanosecond once."""

from __future__ import annotations

import json

import pytest
from builders import frame, kernel, launch, make_trace, op, step

from tracelock.analysis.prepared import Prepared, prepare
from tracelock.errors import TracelockError
from tracelock.report.trace.stacks import collapsed, speedscope


@pytest.fixture
def known() -> Prepared:
    rows = [step(0, 0, 200), op("a;b", 0, 100), op("in\nner", 10, 30), launch(20, 5, 1), frame("main", 0, 150)]
    return prepare(make_trace(rows, [kernel("k", 60, 7, correlation=1)]))


def test_collapsed_stacks_hold_what_each_path_spent_itself(known: Prepared) -> None:
    lines = collapsed(known, "host").splitlines()
    assert lines == ["a,b 70", "a,b;in ner 25", "a,b;in ner;cudaLaunchKernel 5"]
    assert collapsed(known, "device").splitlines() == ["a,b;in ner 7"]
    assert collapsed(known, "python").splitlines() == ["main 150"]


def test_a_speedscope_file_has_the_same_paths_with_names_as_they_were(known: Prepared) -> None:
    document = json.loads(speedscope(known, "host", "t.json"))
    (profile,) = document["profiles"]
    names = [each["name"] for each in document["shared"]["frames"]]
    paths = [[names[place] for place in sample] for sample in profile["samples"]]
    assert paths == [["a;b"], ["a;b", "in\nner"], ["a;b", "in\nner", "cudaLaunchKernel"]]
    assert profile["weights"] == [70, 25, 5]
    assert (profile["type"], profile["unit"], profile["endValue"]) == ("sampled", "nanoseconds", 100)


def test_what_was_not_recorded_is_one_line() -> None:
    with pytest.raises(TracelockError, match="with_stack"):
        collapsed(prepare(make_trace([op("a", 0, 1)])), "python")
