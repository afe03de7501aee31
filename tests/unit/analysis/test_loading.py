"""Loading: who loads, what each step waited, and what ran meanwhile."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from builders import Host, launch, make_trace, op, step
from builders import loading as wait
from hypothesis import given
from hypothesis import strategies as st

from tracelock.analysis.links import link
from tracelock.analysis.loading import iterator, loading, mode
from tracelock.analysis.nesting import nest
from tracelock.analysis.sections import Loading, LoadingOperator, LoadingWait
from tracelock.analysis.steps import find_windows
from tracelock.trace import Trace, read_trace


def analyse(trace: Trace) -> Loading | None:
    tree = nest(trace.host)
    return loading(trace, tree, find_windows(trace, link(trace, tree)), np.ones(len(trace.host), np.bool_))


def test_figures_by_hand() -> None:
    found = analyse(
        make_trace(
            host=[
                wait(0, 50),  # before the first step
                step(0, 100, 1000),
                wait(110, 400),
                op("aten::stack", 120, 100),
                op("aten::cat", 130, 40),
                launch(135, 5, correlation=1),
                op("aten::mm", 600, 100),
                op("aten::stack", 120, 100, thread=2),  # another thread's
                step(1, 1100, 1000),
                wait(1100, 1000),
            ]
        )
    )
    assert found == Loading(
        mode="main process",
        iterators=("_SingleProcessDataLoaderIter",),
        calls=3,
        wait_us=1.45,
        share=0.7,
        waits=(LoadingWait("ProfilerStep#0", 1, 0.4), LoadingWait("ProfilerStep#1", 1, 1.0)),
        operators=(LoadingOperator("aten::stack", 1, 0.06), LoadingOperator("aten::cat", 1, 0.035)),
        outside_operators_us=1.35,
    )


def test_a_pipe_inside_a_loader_is_waited_for_once() -> None:
    inner = op("enumerate(DataPipe)#MapperIterDataPipe", 20, 50)
    found = analyse(make_trace(host=[wait(10, 100), inner, op("aten::stack", 30, 10)]))
    assert found is not None
    assert (found.calls, found.wait_us, found.share) == (1, 0.1, None)
    assert found.operators == (LoadingOperator("aten::stack", 1, 0.01),)
    assert found.mode == "main process"


def test_a_trace_without_a_loader_has_no_loading() -> None:
    assert analyse(make_trace(host=[step(0, 0, 10), op("aten::mm", 1, 2)])) is None


@pytest.mark.parametrize(
    ("iterators", "expected"),
    [
        (["_SingleProcessDataLoaderIter"], "main process"),
        (["_MultiProcessingDataLoaderIter"], "workers"),
        (["_MultiProcessingDataLoaderIter", "_SingleProcessDataLoaderIter"], "both"),
        (["ShufflerIterDataPipe"], None),
        (["ShufflerIterDataPipe", "_MultiProcessingDataLoaderIter"], "workers"),
    ],
)
def test_the_iterator_tells_who_loads(iterators: list[str], expected: str | None) -> None:
    assert mode(iterators) == expected


def test_the_iterator_of_a_row() -> None:
    assert iterator("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__") == "_MultiProcessingDataLoaderIter"
    assert iterator("enumerate(DataPipe)#BatcherIterDataPipe") == "BatcherIterDataPipe"


@given(
    st.lists(st.tuples(st.integers(0, 200), st.integers(1, 30)), max_size=8),
    st.lists(st.tuples(st.integers(0, 200), st.integers(1, 30)), max_size=12),
)
def test_every_nanosecond_of_waiting_is_counted_once(waits: list[tuple[int, int]], ops: list[tuple[int, int]]) -> None:
    host: list[Host] = [wait(*each) for each in waits] + [op("aten::cat", *each) for each in ops]
    steps = [(0, 60), (60, 90), (150, 100)]
    found = analyse(make_trace(host=[*host, *(step(number, *each) for number, each in enumerate(steps))]))
    waited = {tick for start, length in waits for tick in range(start, start + length)}
    if not waits:
        assert found is None
        return
    assert found is not None
    assert found.wait_us == pytest.approx(len(waited) / 1000)
    expected = [len(waited & set(range(start, start + length))) / 1000 for start, length in steps]
    assert [each.wait_us for each in found.waits] == pytest.approx(expected)
    assert 0 <= found.outside_operators_us <= found.wait_us


@pytest.mark.parametrize(
    ("name", "expected"), [("kineto-resnet50-workers0", "main process"), ("kineto-resnet50-workers4", "workers")]
)
def test_the_reference_traces(shared: Path, name: str, expected: str) -> None:
    """The plugin's figure is what the device leaves visible; the wait itself is never shorter."""
    found = analyse(read_trace(shared / "traces" / f"{name}.json.gz"))
    peers = json.loads((shared / "reference" / "peers.json").read_text())[name]["tb_plugin"]
    assert found is not None
    assert (found.mode, found.calls) == (expected, 6)
    for each, costs in zip(found.waits, peers["step_costs_us"], strict=True):
        assert each.wait_us >= costs["DataLoader"] - 700  # the plugin's first windows begin before the host's steps
