"""Copies and sets by direction and kind of host memory."""

from __future__ import annotations

import pytest
from builders import OnDevice, make_trace, memcpy, memset
from hypothesis import given
from strategies import traces

from tracelock.analysis import analyze
from tracelock.analysis.model import Transfer
from tracelock.analysis.transfers import direction, host_memory
from tracelock.trace.columns import DeviceKind, Trace


@pytest.mark.parametrize(
    ("name", "kind", "memory"),
    [
        ("Memcpy HtoD (Pageable -> Device)", "HtoD", "pageable"),
        ("Memcpy HtoD (Pinned -> Device)", "HtoD", "pinned"),
        ("Memcpy DtoH (Device -> Pinned)", "DtoH", "pinned"),
        ("Memcpy DtoD (Device -> Device)", "DtoD", None),
        ("Memcpy PtoP (Device -> Device)", "PtoP", None),
        ("Memcpy HtoD (Host -> Device)", "HtoD", None),
        ("CopyHostToDevice", "HtoD", None),
        ("CopyDeviceToHost", "DtoH", None),
        ("MEMORY_COPY_DEVICE_TO_DEVICE", "DtoD", None),
        ("__amd_rocclr_copyBuffer", "DtoD", None),
        ("zeCommandListAppendMemoryCopy(M2D)", "HtoD", None),
        ("zeCommandListAppendMemoryCopy(D2M)", "DtoH", None),
        ("Memcpy (Pageable -> Device)", "HtoD", "pageable"),
        ("Memcpy Unknown", "other", None),
    ],
)
def test_what_a_name_tells(name: str, kind: str, memory: str | None) -> None:
    assert (direction(name), host_memory(name)) == (kind, memory)


def test_sums_and_bandwidth() -> None:
    device = [
        memcpy("HtoD", 0, 1000, bytes=4000),
        memcpy("HtoD", 2000, 3000, bytes=4000, stream=9),
        memcpy("HtoD", 9000, 100, memory="Pinned -> Device", bytes=1000),
        memcpy("DtoH", 9000, 200, memory="Device -> Pageable"),
        memset(9500, 50, bytes=64),
        OnDevice("CopyHostToDevice", 0, 100, DeviceKind.MEMCPY, bytes=100),
    ]
    assert analyze(make_trace([], device)).transfers == (
        Transfer("HtoD", "pageable", 2, 8000, 4, 2),
        Transfer("DtoH", "pageable", 1, None, 0.2, None),
        Transfer("HtoD", None, 1, 100, 0.1, 1),
        Transfer("HtoD", "pinned", 1, 1000, 0.1, 10),
        Transfer("Memset", None, 1, 64, 0.05, 1.28),
    )


@given(traces())
def test_every_copy_and_set_is_counted_once(trace: Trace) -> None:
    found, rows = analyze(trace).transfers, trace.device
    mine = (rows.kind == DeviceKind.MEMCPY) | (rows.kind == DeviceKind.MEMSET)
    assert sum(each.calls for each in found) == int(mine.sum())
    assert sum(round(each.total_us * 1000) for each in found) == int(rows.duration[mine].sum())
    assert sum(each.bytes or 0 for each in found) == int(rows.bytes[mine & (rows.bytes > 0)].sum())
