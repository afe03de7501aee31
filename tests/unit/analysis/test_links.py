"""From a device row to its launch and its operator."""

from __future__ import annotations

import numpy as np
import pytest
from builders import OnDevice, annotation, kernel, launch, make_trace, memcpy, op, runtime
from hypothesis import given
from strategies import traces

from tracelock.analysis.links import Links, link, lookup
from tracelock.analysis.nesting import nest
from tracelock.trace.columns import DeviceKind, HostKind, Trace


def linked(trace: Trace) -> Links:
    return link(trace, nest(trace.host))


def operators(trace: Trace) -> list[str | None]:
    return [trace.texts[trace.host.name[row]] if row >= 0 else None for row in linked(trace).operator]


def test_a_kernel_belongs_to_the_innermost_operator_of_its_launch() -> None:
    trace = make_trace(
        [op("outer", 0, 50), op("inner", 10, 20), annotation("label", 12, 10), launch(15, 3, 7)],
        [kernel("k", 100, 10, correlation=7), kernel("other", 120, 1, correlation=8)],
    )
    links = linked(trace)
    assert operators(trace) == ["inner", None]
    assert trace.texts[trace.host.name[links.caller[0]]] == "label"
    assert links.launch.tolist() == [3, -1]


@pytest.mark.parametrize("correlation", [0, -1])
def test_ids_that_mean_none_join_nothing(correlation: int) -> None:
    trace = make_trace([launch(0, 3, correlation)], [kernel("k", 5, 5, correlation=correlation)])
    assert linked(trace).launch.tolist() == [-1]


def test_an_id_of_two_launches_joins_nothing() -> None:
    trace = make_trace([launch(0, 3, 5), launch(10, 3, 5), launch(20, 3, 6)], [kernel("k", 30, 5, correlation=5)] * 2)
    assert linked(trace).launch.tolist() == [-1, -1]


def test_a_launch_seen_twice_is_one() -> None:
    driver = runtime("cuLaunchKernel", 11, 5, correlation=5)
    driver = type(driver)(**{**vars(driver), "kind": HostKind.DRIVER})
    trace = make_trace([launch(10, 8, 5), driver], [kernel("k", 30, 5, correlation=5)])
    assert linked(trace).launch.tolist() == [0]
    elsewhere = type(driver)(**{**vars(driver), "thread": 9})
    assert linked(make_trace([launch(10, 8, 5), elsewhere], [kernel("k", 30, 5, correlation=5)])).launch.tolist() == [
        -1
    ]


def test_all_rows_of_a_graph_launch_are_linked() -> None:
    graph = runtime("cudaGraphLaunch", 10, 5, correlation=5)
    trace = make_trace([op("replay", 5, 20), graph], [kernel(f"k{n}", 30 + n, 5, correlation=5) for n in range(3)])
    assert operators(trace) == ["replay"] * 3


def test_the_external_id_stands_in_for_a_lost_launch() -> None:
    host = [op("a", 0, 10, external=3), op("b", 20, 10, external=4), op("c", 40, 10, external=4)]
    trace = make_trace(host, [kernel("k", 50, 5, external=3), memcpy("HtoD", 60, 5, external=4)])
    assert operators(trace) == ["a", None]
    assert linked(trace).launch.tolist() == [-1, -1]


def test_the_share_of_linked_time_counts_work_alone() -> None:
    sync = OnDevice("Event Sync", 0, 500, DeviceKind.SYNC)
    trace = make_trace(
        [launch(0, 3, 7)], [kernel("k", 10, 30, correlation=7), kernel("k", 50, 10, correlation=9), sync]
    )
    busy = trace.device.kind <= DeviceKind.MEMSET
    assert linked(trace).share_of_time(trace.device, busy) == 0.75
    assert linked(trace).share_of_time(trace.device, busy & False) is None


@pytest.mark.parametrize("step", [1, 10**9])
def test_dense_and_sparse_ids_are_found_alike(step: int) -> None:
    keys = np.array([4, 2, 9]) * step
    wanted = np.array([9, 2, 3, 4, -1, 0, 10]) * step
    assert lookup(keys, np.array([40, 20, 90]), wanted).tolist() == [90, 20, -1, 40, -1, -1, -1]
    assert lookup(keys[:0], keys[:0], wanted).tolist() == [-1] * 7


@given(traces())
def test_links_are_those_found_one_by_one(trace: Trace) -> None:
    links, host, device = linked(trace), trace.host, trace.device
    called = [int(host.correlation[row]) if host.kind[row] == HostKind.RUNTIME else -1 for row in range(len(host))]
    tree = nest(host)
    for row in range(len(device)):
        wanted = int(device.correlation[row])
        launch_row = called.index(wanted) if wanted > 0 and wanted in called else -1
        assert links.launch[row] == launch_row
        at = launch_row
        while at >= 0 and host.kind[at] not in (HostKind.OPERATOR, HostKind.ANNOTATION):
            at = int(tree.parent[at])
        assert links.caller[row] == at
