"""A small trace with everything that a page can show, whose names may be anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from builders import (
    MemoryEvent,
    annotation,
    frame,
    kernel,
    launch,
    loading,
    make_trace,
    memcpy,
    op,
    step,
)

from tracelock.analysis.analyze import analyze_prepared
from tracelock.analysis.prepared import Prepared, prepare
from tracelock.diagnosis import diagnose
from tracelock.report.trace.page import File, file_of, render
from tracelock.trace import Trace

US = 1000
STEP = 1000 * US
BACKWARD = 2
HOSTILE = (
    "<script>window.broken = 1</script>",
    "\"'><img src=x onerror=window.broken=1>",
    "]]></script><svg onload=window.broken=1>",
    '=HYPERLINK("x")',
    "\u202eright to left\u202c",
    "\x00NUL\x1b[31m\x07",
    "\ud800 alone",
    "{{ 7 * 7 }}${7*7}</title></style>",
    "long" * 2500,
    "__proto__",
)


def page_trace(steps: int = 4, name: Callable[[str], str] = str) -> Trace:
    """Return `steps` steps of 1 ms (the last but one of 2 ms) with loading, forward, backward, a copy, and memory."""
    rows, work, memory, at = [], [], [], 10 * US
    for number in range(steps):
        long = 2 if number == steps - 2 else 1
        rows += _host(number, at, long, name)
        work += _device(number, at, long, name)
        memory += _memory(number, at)
        at += long * STEP
    names = {(100, 1): {"thread_name": name("main")}, (0, 7): {"thread_name": name("stream 7")}}
    return make_trace(rows, work, memory, track_names=names, file=name("made.json"), torch_version="2.9.0")


def _host(number: int, at: int, long: int, name: Callable[[str], str]) -> list[object]:
    forward, backward = at + 400 * US * long, at + 700 * US * long
    stack = name("train.py(12): loss") + ";" + name("train.py(40): main")
    rows = [
        step(number, at, long * STEP - 10 * US),
        loading(at + 5 * US, 350 * US * long),
        frame(name("train.py(40): main"), at + 360 * US * long, 600 * US * long),
        frame("nn.Module: " + name("Net_0"), forward, 200 * US),
        frame("nn.Module: " + name("Linear_0"), forward + 10 * US, 100 * US),
        op(name("aten::linear"), forward + 20 * US, 80 * US, sequence=number, forward_thread=0, shapes="[[32, 64]]"),
        op(name("aten::mm"), forward + 30 * US, 50 * US, sequence=number, forward_thread=0, shapes=name("[[32]]")),
        launch(forward + 40 * US, 10 * US, correlation=10 * number + 1),
        annotation(name("my region"), forward + 120 * US, 60 * US),
        op(name("aten::relu"), forward + 130 * US, 20 * US, shapes="[[32, 64]]"),
        launch(forward + 135 * US, 5 * US, correlation=10 * number + 2),
        op(name("MmBackward0"), backward, 100 * US, sequence=number, forward_thread=1, thread=BACKWARD),
        op(name("aten::mm"), backward + 10 * US, 50 * US, thread=BACKWARD, stack=stack),
        launch(backward + 20 * US, 10 * US, correlation=10 * number + 3, thread=BACKWARD),
        annotation("Optimizer.step#SGD.step", backward + 150 * US, 50 * US),
        op("aten::add_", backward + 160 * US, 20 * US),
    ]
    return list(rows)


def _device(number: int, at: int, long: int, name: Callable[[str], str]) -> list[object]:
    forward, backward = at + 400 * US * long, at + 700 * US * long
    return [
        kernel(name("ampere_sgemm_32x32"), forward + 60 * US, 90 * US, correlation=10 * number + 1),
        kernel(name("relu_kernel"), forward + 155 * US, 30 * US, correlation=10 * number + 2),
        memcpy("HtoD", forward + 190 * US, 20 * US, bytes=4096),
        kernel(name("ampere_sgemm_32x32"), backward + 40 * US, 120 * US, correlation=10 * number + 3),
    ]


def _memory(number: int, at: int) -> list[object]:
    where = {"device_type": 1, "device": 0, "reserved": 1 << 30}
    base, first, second = 1 << 20, 4 << 20, 2 << 20
    low, high = base + first, base + first + second
    address = 4096 * (number + 1)
    return [
        MemoryEvent(at + 440 * US, first, allocated=low, address=address, **where),
        MemoryEvent(at + 720 * US, second, allocated=high, address=address + 512, thread=BACKWARD, **where),
        MemoryEvent(at + 950 * US, -second, allocated=low, address=address + 512, **where),
        MemoryEvent(at + 960 * US, -first, allocated=base, address=address, **where),
    ]


def page_file(trace: Trace, share: float = 1.0) -> tuple[Prepared, File]:
    """Return a trace prepared, and what a page shows of it."""
    known = prepare(trace)
    return known, file_of(known, diagnose(analyze_prepared(known)), share)


def write_page(place: Path, *traces: Trace) -> Path:
    """Write the page of some traces."""
    pages = [page_file(trace, 1 / len(traces))[1] for trace in traces]
    place.write_text(render(pages), encoding="utf-8")
    return place


def hostile_trace() -> Trace:
    """Return the trace with a hostile text in each name, another one each time, so that all views meet all of them."""
    turn = iter(range(10**6))

    def renamed(text: str) -> str:
        number = next(turn)
        return f"{HOSTILE[number % len(HOSTILE)]}{text if number % 3 else ''}"

    return page_trace(steps=6, name=renamed)


def many_rows(count: int) -> Trace:
    """Return one step with `count` short operators, and as many kernels."""
    rows: list[object] = [step(0, 0, count * US + US)]
    work: list[object] = []
    for number in range(count // 2):
        rows += [op(f"aten::op{number % 50}", number * 2 * US, US), launch(number * 2 * US + 100, 500, number + 1)]
        work.append(kernel(f"kernel{number % 20}", number * 2 * US + 700, US, correlation=number + 1))
    return replace(make_trace(rows, work))
