"""Collectives: what each does, how much moves, and how much of it computation hides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from builders import annotation, kernel, launch, make_trace, op
from hypothesis import given
from hypothesis import strategies as st

from tracelock.analysis.collective_calls import (
    HOST,
    Call,
    Description,
    canonical,
    collective_calls,
    type_name,
)
from tracelock.analysis.collectives import bus_factor, collectives
from tracelock.analysis.gpu import device_times
from tracelock.analysis.links import Links, link
from tracelock.analysis.nesting import nest
from tracelock.analysis.sections import Collective, Collectives
from tracelock.trace import Trace, read_trace

FAR = 1 << 62


def calls_of(trace: Trace, links: Links | None = None) -> list[Call]:
    tree = nest(trace.host)
    return collective_calls(trace, tree, links or link(trace, tree))


def analyse(trace: Trace, low: int = 0, high: int = FAR) -> tuple[Collectives, ...]:
    return collectives(trace, calls_of(trace), device_times(trace), low, high)


def described(name: str, sent: int, received: int, size: int, dtype: str = "Float") -> dict[str, Any]:
    return {
        "Collective name": name,
        "In msg nelems": sent,
        "Out msg nelems": received,
        "Group size": size,
        "dtype": dtype,
        "Process Group Name": "0",
    }


def nccl(start: int, duration: int, collective: dict[str, Any] | None = None, **rest: Any) -> Any:
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"
    return kernel(name, start, duration, stream=20, collective=collective, **rest)


def test_figures_by_hand() -> None:
    trace = make_trace(
        device=[
            nccl(0, 1_000_000, described("allreduce", 1000, 1000, 4)),
            kernel("gemm", 250_000, 250_000),
            nccl(2_000_000, 3_000_000, described("allreduce", 3000, 3000, 4)),
            nccl(6_000_000, 1_000_000, described("_allgather_base", 10, 40, 4, "BFloat16")),
        ]
    )
    (found,) = analyse(trace)
    assert (found.device, found.union_us, found.overlapped_us, found.overlap_share) == (0, 5000.0, 250.0, 0.05)
    assert found.items == (
        Collective("all_reduce", "float32", 4, 2, 16_000, 4000.0, 1000.0, 3000.0, 4e6, 6e6),
        Collective("all_gather", "bfloat16", 4, 1, 80, 1000.0, 1000.0, 1000.0, 80_000.0, 60_000.0),
    )


def test_only_the_window_counts() -> None:
    trace = make_trace(device=[nccl(0, 10), nccl(100, 10), nccl(195, 10)])
    (found,) = analyse(trace, 100, 200)
    assert found.union_us == 0.015
    assert [item.calls for item in found.items] == [2]


def test_the_label_around_the_launch_tells_what_old_kernels_do_not() -> None:
    shapes, types = "[[100,2],[50]]", '["c10::BFloat16"]'
    trace = make_trace(
        host=[
            annotation("nccl:all_reduce", 0, 100, shapes=shapes, types=types),
            launch(10, 5, correlation=1),
            annotation("nccl:reduce_scatter", 200, 100, shapes=shapes, types=types),
            launch(210, 5, correlation=2),
        ],
        device=[nccl(50, 10, correlation=1), nccl(250, 10, correlation=2), nccl(300, 10)],
    )
    assert [call.what for call in calls_of(trace)] == [
        Description("all_reduce", "bfloat16", 500),
        Description("reduce_scatter", "bfloat16", None),  # its input is not its whole message
        Description("all_reduce"),  # by the kernel's own name alone
    ]


def test_a_collective_of_the_host_is_its_label() -> None:
    trace = make_trace(
        host=[
            op("c10d::allreduce_", 0, 5),
            annotation("gloo:all_reduce", 10, 100, thread=9, shapes="[[7]]", types='["float"]'),
            op("aten::mm", 50, 20),
            op("aten::mm", 200, 20),
        ]
    )
    (call,) = calls_of(trace)
    assert (call.what, call.device, call.start, call.end) == (Description("all_reduce", "float32", 28), HOST, 10, 110)
    (found,) = analyse(trace)
    assert (found.device, found.union_us, found.overlapped_us) == (HOST, 0.1, 0.02)


def test_labels_of_device_libraries_are_launches_and_no_collectives() -> None:
    assert calls_of(make_trace(host=[annotation("nccl:all_reduce", 0, 100)])) == []


@pytest.mark.parametrize("shapes", ["[[1,", "7", '[["a"]]', "[[[1,2]]]", "[]"])
def test_odd_shapes_leave_the_size_unknown(shapes: str) -> None:
    trace = make_trace(host=[annotation("gloo:all_reduce", 0, 9, shapes=shapes, types='["float"]')])
    (call,) = calls_of(trace)
    assert call.what.bytes is None


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("allreduce", "all_reduce"),
        ("all_reduce", "all_reduce"),
        ("allreduce_coalesced", "all_reduce"),
        ("_allgather_base", "all_gather"),
        ("all_gather_into_tensor", "all_gather"),
        ("_reduce_scatter_base", "reduce_scatter"),
        ("ReduceScatter", "reduce_scatter"),
        ("all_to_allv", "all_to_all"),
        ("SendRecv", "send_recv"),
        ("reduce", "reduce"),
        ("broadcast", "broadcast"),
        ("something", "something"),
        ("", "unknown"),
    ],
)
def test_names_are_those_of_torch_distributed(written: str, expected: str) -> None:
    assert canonical(written) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [("Float", "float32"), ("c10::BFloat16", "bfloat16"), ("long int", "int64"), ("Odd", "Odd"), (None, None)],
)
def test_types_are_named_as_torch_names_them(written: str | None, expected: str | None) -> None:
    assert type_name(written) == expected


@pytest.mark.parametrize(
    ("name", "size", "expected"),
    [
        ("all_reduce", 2, 1.0),
        ("all_reduce", 8, 1.75),
        ("all_gather", 8, 0.875),
        ("all_to_all", 4, 0.75),
        ("broadcast", None, 1.0),
        ("all_reduce", 1, None),
        ("all_reduce", None, None),
        ("unknown", 8, None),
    ],
)
def test_bus_factors_are_those_of_nccl_tests(name: str, size: int | None, expected: float | None) -> None:
    assert bus_factor(name, size) == expected


rows = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 15)), max_size=8)


@given(rows, rows)
def test_overlap_is_that_of_a_slow_twin(communication: list[tuple[int, int]], compute: list[tuple[int, int]]) -> None:
    trace = make_trace(device=[nccl(*each) for each in communication] + [kernel("gemm", *each) for each in compute])
    moves = {tick for start, length in communication for tick in range(start, start + length)}
    works = {tick for start, length in compute for tick in range(start, start + length)}
    found = analyse(trace)
    if not communication:
        assert found == ()
        return
    assert found[0].union_us == pytest.approx(len(moves) / 1000)
    assert found[0].overlapped_us == pytest.approx(len(moves & works) / 1000)
    assert sum(item.calls for item in found[0].items) == len(communication)


@pytest.mark.parametrize("rank", range(8))
def test_overlap_is_that_of_hta(shared: Path, rank: int) -> None:
    peers = json.loads((shared / "reference" / "peers.json").read_text())["dlrm-rank0..7"]["hta"]["comm_comp_overlap"]
    (found,) = analyse(read_trace(shared / "traces" / f"dlrm-rank{rank}.json.gz"))
    assert found.overlap_share is not None
    assert round(100 * found.overlap_share, 2) == float(peers[rank]["comp_comm_overlap_pctg"])


def test_communication_is_that_of_tracelens(shared: Path) -> None:
    """Exposed communication of TraceLens is ours less what computation hides, to its last digit."""
    peers = json.loads((shared / "reference" / "peers.json").read_text())["dlrm-rank0..7"]["tracelens_all_gpu_events"]
    exposed = next(float(row["time ms"]) for row in peers if row["type"] == "exposed_comm_time")
    (found,) = analyse(read_trace(shared / "traces" / "dlrm-rank0.json.gz"))
    assert found.overlapped_us is not None
    assert found.union_us - found.overlapped_us == pytest.approx(1000 * exposed, abs=1e-6)


def test_every_kernel_of_a_collective_is_in_one_row(shared: Path) -> None:
    for path in sorted((shared / "traces").glob("*.json.gz")):
        trace = read_trace(path)
        calls = [call for call in calls_of(trace) if call.device != HOST]
        for found in analyse(trace):
            if found.device != HOST:
                assert sum(item.calls for item in found.items) == sum(call.device == found.device for call in calls)
                total = sum(item.total_us for item in found.items)
                assert found.union_us <= total + 1e-9
                assert 0 <= (found.overlap_share or 0) <= 1
