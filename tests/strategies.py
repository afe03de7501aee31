"""Traces made up at random, small enough that every figure can be found again by counting nanoseconds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from builders import (
    Host,
    OnDevice,
    annotation,
    frame,
    kernel,
    launch,
    loading,
    make_trace,
    memcpy,
    memset,
    op,
    runtime,
    step,
)
from hypothesis import strategies as st

from tracelock.analysis import intervals
from tracelock.trace.columns import DeviceKind, Trace

END = 120  # nanoseconds that such a trace lasts
MAIN, BACKWARD = 1, 2
_OPERATORS = ("aten::mm", "aten::add", "aten::item", "autograd::engine::evaluate_function: MmBackward0")
_KERNELS = ("gemm", "ncclDevKernel_AllReduce", "elementwise", "volta_h884gemm")


@contextmanager
def in_chunks_of(rows: int) -> Iterator[None]:
    """Let the analyses copy at most so many rows at once, as they do with columns of millions."""
    before, intervals.CHUNK = intervals.CHUNK, rows
    try:
        yield
    finally:
        intervals.CHUNK = before


@st.composite
def times(draw: st.DrawFn, end: int = END) -> tuple[int, int]:
    """Draw a start and a duration inside a trace; short ones and none at all often."""
    start = draw(st.integers(0, end))
    return start, draw(st.sampled_from((0, 1, 2, 5)) | st.integers(0, end - start)) if start < end else 0


@st.composite
def host_rows(draw: st.DrawFn) -> list[Host]:
    """Draw operators, labels, frames, loading, collectives and calls of two threads, however they cross."""
    rows: list[Host] = []
    for _ in range(draw(st.integers(0, 14))):
        (start, duration), thread = draw(times()), draw(st.sampled_from((MAIN, BACKWARD)))
        make: Any = draw(
            st.sampled_from(
                (
                    *(lambda *at, name=name, **to: op(name, *at, **to) for name in _OPERATORS),
                    lambda *at, **to: annotation("forward", *at, **to),
                    lambda *at, **to: annotation("nccl:all_reduce", *at, **to),
                    lambda *at, **to: frame("train.py(7): main", *at, **to),
                    lambda *at, **to: runtime("cudaStreamSynchronize", *at, **to),
                    loading,
                )
            )
        )
        rows.append(make(start, duration, thread=thread))
    return rows


@st.composite
def launches(draw: st.DrawFn) -> tuple[list[Host], list[OnDevice]]:
    """Draw launch calls and the device rows they made; some rows have lost their call, some calls made many rows."""
    calls: list[Host] = []
    rows: list[OnDevice] = []
    for correlation in range(1, 1 + draw(st.integers(0, 8))):
        begun, took = draw(times())
        if draw(st.integers(0, 9)):
            calls.append(launch(begun, took, correlation, thread=draw(st.sampled_from((MAIN, BACKWARD)))))
        for _ in range(draw(st.sampled_from((1, 1, 1, 2)))):
            rows.append(draw(device_row(correlation)))
    return calls, rows


@st.composite
def device_row(draw: st.DrawFn, correlation: int) -> OnDevice:
    """Draw a kernel, copy, set, synchronisation or annotation of one of two devices."""
    start, duration = draw(times())
    where = {"device": draw(st.sampled_from((0, 0, 1))), "stream": draw(st.sampled_from((0, 7)))}
    kind = draw(st.sampled_from(list(DeviceKind)))
    if kind == DeviceKind.MEMCPY:
        return memcpy(
            "HtoD", start, duration, correlation=correlation, bytes=draw(st.sampled_from((-1, 0, 64))), **where
        )
    if kind == DeviceKind.MEMSET:
        return memset(start, duration, correlation=correlation, **where)
    if kind in (DeviceKind.SYNC, DeviceKind.ANNOTATION):
        return OnDevice("ProfilerStep#1", start, duration, kind, correlation=correlation, **where)
    blocks = draw(st.sampled_from((0.25, 0.5, 2.0, float("nan"))))
    occupancy = draw(st.sampled_from((0.0, 25.0, 100.0, float("nan"))))
    name = draw(st.sampled_from(_KERNELS))
    return kernel(name, start, duration, correlation=correlation, blocks_per_sm=blocks, occupancy=occupancy, **where)


@st.composite
def step_rows(draw: st.DrawFn) -> list[Host]:
    """Draw none to four steps of the main thread, one after the other, with or without a pause between them."""
    edges = sorted(draw(st.lists(st.integers(0, END), min_size=2, max_size=5, unique=True)))
    pause = draw(st.booleans())
    if draw(st.integers(0, 4)) == 0:
        return []
    return [
        step(number, low, high - low - (1 if pause else 0), thread=MAIN)
        for number, (low, high) in enumerate(itertools.pairwise(edges))
    ]


@st.composite
def traces(draw: st.DrawFn, *, quality: str = "complete") -> Trace:
    """Draw a whole trace."""
    calls, rows = draw(launches())
    return make_trace([*draw(step_rows()), *draw(host_rows()), *calls], rows, quality=quality)
