"""The breakdown of a step against a count of nanoseconds."""

from __future__ import annotations

from builders import Host, annotation, frame, kernel, loading, make_trace, memcpy, memset, op, runtime, step
from hypothesis import given
from strategies import traces

from tracelock.analysis.breakdown import break_down
from tracelock.analysis.links import link
from tracelock.analysis.names import is_collective_call, is_loading, is_step
from tracelock.analysis.nesting import nest
from tracelock.analysis.parts import STEP
from tracelock.analysis.steps import find_windows
from tracelock.trace.columns import DeviceKind, HostKind, Trace

ROLES = tuple(part.key for part in STEP)

DEVICE_ROLES = {DeviceKind.KERNEL: "kernel", DeviceKind.MEMCPY: "memcpy", DeviceKind.MEMSET: "memset"}


def parts(trace: Trace) -> list[list[int]]:
    windows = find_windows(trace, link(trace, nest(trace.host)))
    return break_down(trace, windows.start, windows.end).tolist()


def host_role(kind: HostKind, name: str) -> str:
    """What a host row counts as; rows of no role are "other"."""
    if kind in (HostKind.RUNTIME, HostKind.DRIVER):
        return "runtime"
    if kind not in (HostKind.OPERATOR, HostKind.ANNOTATION) or is_step(name):
        return "other"
    if is_collective_call(name):
        return "communication"
    return "dataloader" if is_loading(name) else "cpu_op"


def role_at(trace: Trace, tick: int) -> str:
    """The twin: the first role in order that some row has at a nanosecond."""
    host, device = trace.host, trace.device
    held = {"other"}
    for row in range(len(device)):
        if device.start[row] <= tick < device.start[row] + device.duration[row]:
            held.add(DEVICE_ROLES.get(DeviceKind(device.kind[row]), "other"))
    for row in range(len(host)):
        if host.start[row] <= tick < host.start[row] + host.duration[row]:
            held.add(host_role(HostKind(host.kind[row]), trace.texts[host.name[row]]))
    return min(held, key=ROLES.index)


def test_parts_by_hand() -> None:
    trace = make_trace(
        [
            step(0, 0, 100),
            loading(0, 30),
            op("aten::stack", 5, 10),
            op("aten::mm", 40, 20),
            runtime("cudaMemcpyAsync", 25, 5, correlation=2),
            runtime("cudaLaunchKernel", 50, 5, correlation=1),
            annotation("nccl:all_reduce", 70, 10),
            frame("main", 0, 100),
        ],
        [kernel("gemm", 55, 10, correlation=1), memcpy("HtoD", 25, 10, correlation=2), memset(60, 10)],
    )
    # memcpy 25-35; kernel 55-65; memset 65-70; communication 70-80; runtime 50-55; loading 0-25; operator 40-50
    assert dict(zip(ROLES, parts(trace)[0], strict=True)) == {
        "kernel": 10,
        "memcpy": 10,
        "memset": 5,
        "communication": 10,
        "runtime": 5,
        "dataloader": 25,
        "cpu_op": 10,
        "other": 25,
    }


def test_kernels_of_collectives_are_kernels() -> None:
    trace = make_trace([step(0, 0, 100), annotation("nccl:all_reduce", 10, 20)], [kernel("ncclDevKernel", 20, 50)])
    found = dict(zip(ROLES, parts(trace)[0], strict=True))
    assert (found["kernel"], found["communication"]) == (50, 10)


def test_loading_is_found_in_every_spelling() -> None:
    name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    for row in (op(name, 10, 20), annotation(name, 10, 20), annotation("enumerate(DataPipe)#Batcher", 10, 20)):
        assert dict(zip(ROLES, parts(make_trace([step(0, 0, 100), row]))[0], strict=True))["dataloader"] == 20


def test_calls_of_the_driver_are_runtime() -> None:
    trace = make_trace([step(0, 0, 100), op("triton", 10, 50), Host("cuLaunchKernel", 20, 10, HostKind.DRIVER)])
    found = dict(zip(ROLES, parts(trace)[0], strict=True))
    assert (found["runtime"], found["cpu_op"]) == (10, 40)


def test_no_rows() -> None:
    assert parts(make_trace()) == []
    assert parts(make_trace([Host("x", 3, 4, HostKind.OVERHEAD)])) == [[0, 0, 0, 0, 0, 0, 0, 4]]


@given(traces())
def test_parts_are_those_counted_nanosecond_by_nanosecond(trace: Trace) -> None:
    windows = find_windows(trace, link(trace, nest(trace.host)))
    for found, low, high in zip(parts(trace), windows.start.tolist(), windows.end.tolist(), strict=True):
        roles = [role_at(trace, tick) for tick in range(low, high)]
        assert found == [roles.count(role) for role in ROLES]
        assert sum(found) == high - low
