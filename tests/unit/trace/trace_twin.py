"""A slow, obvious reader of sound traces, to compare the fast one with: json.loads, Decimal, one row at a time."""

from __future__ import annotations

import gzip
import json
import math
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

from tracelock.trace import Trace

HOST = {
    "cpu_op": 0,
    "Operator": 0,
    "cuda_runtime": 1,
    "Runtime": 1,
    "xpu_runtime": 1,
    "cuda_driver": 2,
    "user_annotation": 3,
    "python_function": 4,
    "overhead": 5,
}
DEVICE = {
    "kernel": 0,
    "Kernel": 0,
    "gpu_memcpy": 1,
    "Memcpy": 1,
    "gpu_memset": 2,
    "Memset": 2,
    "cuda_sync": 3,
    "gpu_user_annotation": 4,
}
FLOW = {"ac2g": 0, "async": 0, "fwdbwd": 1}

Rows = dict[str, Counter[tuple[Any, ...]]]


def load(path: Path) -> Any:
    """Return the document in a file, numbers with a point as Decimal."""
    raw = path.read_bytes()
    if path.suffix == ".gz":
        raw = gzip.decompress(raw)
    return json.loads(raw.removeprefix(b"\xef\xbb\xbf"), parse_float=Decimal)


def ns(value: Any) -> int:
    """Return microseconds as nanoseconds."""
    return int((Decimal(value) * 1000).to_integral_value())


def lane(event: dict[str, Any]) -> tuple[Any, Any]:
    """Return (pid, tid), numbers written as texts being numbers."""
    return tuple(int(x) if isinstance(x, str) and x.isdecimal() else x for x in (event["pid"], event["tid"]))  # type: ignore[return-value]


def compact(value: Any) -> str | None:
    """Return a text as it is, anything else as compact JSON."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=float)


def whole(value: Any) -> int:
    """Return an id, or -1."""
    return value if isinstance(value, int) else -1


def number(value: Any) -> float | None:
    """Return a float32-rounded number, or None."""
    import numpy as np

    return None if value is None else float(np.float32(float(value)))


def rows_of(document: Any) -> Rows:
    """Return the rows of each table as a multiset of tuples."""
    row: tuple[Any, ...]
    tables: Rows = {"host": Counter(), "device": Counter(), "memory": Counter(), "flows": Counter()}
    events = document if isinstance(document, list) else document["traceEvents"]
    for event in events:
        args = event.get("args") or {}
        phase, category = event["ph"], event.get("cat", "")
        external = args.get("External id", args.get("external id", -1))
        if phase == "X" and category in DEVICE:
            stream = args.get("stream", -1)
            described = {k: v for k, v in args.items() if "Collective name" in args and k not in PLAIN_KEYS}
            device = args.get("device", event["pid"])
            row = (ns(event["ts"]), ns(event["dur"]), event["name"], lane(event), DEVICE[category])
            row += (device, -1 if stream in (2**31 - 1, 2**32 - 1) else stream, args.get("correlation", -1), external)
            row += (whole(args.get("bytes")), number(args.get("blocks per SM")))
            row += (number(args.get("est. achieved occupancy %")),)
            row += (json.dumps(described, sort_keys=True) if described else None,)
            tables["device"][row] += 1
        elif phase == "X" and category != "Trace":
            kind = HOST.get(category, 6)
            operator = kind in (0, 3, 6)
            tables["host"][
                (ns(event["ts"]), ns(event["dur"]), event["name"], lane(event), kind)
                + (args.get("correlation", -1) if kind in (1, 2, 5, 6) else -1, external if kind != 4 else -1)
                + ((args.get("Sequence number", -1), args.get("Fwd thread id", -1)) if operator else (-1, -1))
                + tuple(
                    compact(args.get(key)) if operator else None for key in ("Input Dims", "Input type", "Call stack")
                )
                + (whole(args.get("Python id")), whole(args.get("Python parent id")))
            ] += 1
        elif phase in "stf":
            identifier = event["id"]
            identifier = int(identifier, 0) if isinstance(identifier, str) else identifier
            tables["flows"][ns(event["ts"]), lane(event), identifier, FLOW.get(category, 2), phase == "s"] += 1
        elif phase == "i" and event["name"] == "[memory]":
            row = (ns(event["ts"]), lane(event), args["Device Type"], args["Device Id"], args.get("Addr", 0) % 2**64)
            row += (args["Bytes"], args.get("Total Allocated", -1), args.get("Total Reserved", -1))
            tables["memory"][row] += 1
    return tables


NOT_OF_COLLECTIVES = """External id;queued;device;context;stream;correlation;registers per thread;shared memory;kind
;blocks per SM;warps per SM;grid;block;est. achieved occupancy %;Record function id;Ev Idx"""
PLAIN_KEYS = frozenset(NOT_OF_COLLECTIVES.replace("\n", "").split(";"))


def rows_read(trace: Trace) -> Rows:
    """Return the rows of a trace in the form of `rows_of`."""
    text = [*trace.texts, None]
    lanes = [(track.pid, track.tid) for track in trace.tracks]
    described = [*(json.dumps(dict(one), sort_keys=True) for one in trace.collectives), None]
    host, device, memory, flows = trace.host, trace.device, trace.memory, trace.flows

    def lists(table: Any, *names: str) -> list[list[Any]]:
        return [getattr(table, name).tolist() for name in names]

    def none(value: float) -> float | None:
        return None if math.isnan(value) else value

    def counted(columns: list[list[Any]], change: dict[int, Any]) -> Counter[tuple[Any, ...]]:
        mapped = [map(change[i], column) if i in change else column for i, column in enumerate(columns)]
        return Counter(zip(*mapped, strict=True))

    ids = (
        "correlation",
        "external",
        "sequence",
        "forward_thread",
        "shapes",
        "types",
        "stack",
        "python_id",
        "python_parent",
    )
    on_device = ("device", "stream", "correlation", "external", "bytes", "blocks_per_sm", "occupancy", "collective")
    named, placed = text.__getitem__, lanes.__getitem__
    return {
        "host": counted(
            lists(host, "start", "duration", "name", "track", "kind", *ids),
            {2: named, 3: placed, 9: named, 10: named, 11: named},
        ),
        "device": counted(
            lists(device, "start", "duration", "name", "track", "kind", *on_device),
            {2: named, 3: placed, 10: none, 11: none, 12: described.__getitem__},
        ),
        "memory": counted(
            lists(memory, "time", "track", "device_type", "device", "address", "bytes", "allocated", "reserved"),
            {1: placed},
        ),
        "flows": counted(lists(flows, "time", "track", "identifier", "kind", "begins"), {1: placed}),
    }
