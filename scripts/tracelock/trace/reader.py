"""Read a Kineto trace into columns."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tracelock.errors import Problem, TracelockError
from tracelock.trace.columns import (
    Device,
    DeviceRows,
    FlowKind,
    FlowRows,
    HostKind,
    HostRows,
    MemoryRows,
    Trace,
    TraceFacts,
    TraceWarning,
    Track,
)
from tracelock.trace.kinds import DEVICE_CATEGORIES, FLOW_CATEGORIES, HOST_CATEGORIES, SPAN_CATEGORY, fold

Progress = Callable[[int, int], None]


class _Ids(dict[Any, int]):
    """Different values in order of appearance; looking up a new one adds it."""

    def __missing__(self, key: Any) -> int:
        self[key] = number = len(self)
        return number


def _ns(value: Any) -> int:
    return int((Decimal(value) * 1000).to_integral_value())


def _whole(value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        return -1
    return number if -(2**63) <= number < 2**63 else -1


def _load(path: Path) -> Any:
    raw = path.read_bytes()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    return msgspec.json.Decoder(float_hook=Decimal).decode(raw.removeprefix(b"\xef\xbb\xbf")), len(raw)


def read_trace(path: str | Path, progress: Progress | None = None) -> Trace:
    """Read the trace at `path`; `progress` is called with bytes done and bytes in all."""
    path = Path(path)
    try:
        document, size = _load(path)
    except OSError as error:
        raise TracelockError(Problem(str(path), f"cannot be read: {error.strerror or error}")) from None
    except msgspec.DecodeError as error:
        raise TracelockError(Problem(str(path), f"is not a trace: {error}")) from None
    if isinstance(document, list):
        document = {"traceEvents": document}
    return _Build(path, size).build(document)


class _Build:
    def __init__(self, path: Path, size: int) -> None:
        self.path, self.size = path, size
        self.texts, self.tracks, self.collectives = _Ids(), _Ids(), _Ids()
        self.named: dict[tuple[Any, Any], dict[str, Any]] = {}
        self.host: list[tuple[Any, ...]] = []
        self.device: list[tuple[Any, ...]] = []
        self.memory: list[tuple[Any, ...]] = []
        self.flows: list[tuple[Any, ...]] = []
        self.lost: dict[str, int] = {}

    def track(self, event: dict[str, Any]) -> int:
        lane = [event.get("pid", ""), event.get("tid", "")]
        lane = [int(x) if isinstance(x, str) and x.isdecimal() else x for x in lane]
        return self.tracks[tuple(lane)]

    def text(self, value: Any) -> int:
        if value is None:
            return -1
        return self.texts[value if isinstance(value, str) else msgspec.json.encode(value).decode()]

    def add(self, event: Any) -> None:
        if not isinstance(event, dict) or "ph" not in event:
            self.lost["not-an-event"] = self.lost.get("not-an-event", 0) + 1
            return
        phase, args = event["ph"], event.get("args") or {}
        category = fold(event.get("cat") or "")
        if phase == "M":
            pid, tid = event.get("pid"), event.get("tid")
            key = (pid, None) if event["name"].startswith("process") else (pid, tid)
            self.named.setdefault(key, {})[event["name"]] = args.get("name", args.get("labels"))
        elif phase in ("s", "t", "f"):
            kind = FLOW_CATEGORIES.get(category, FlowKind.OTHER)
            number = event.get("id", -1)
            number = int(number, 0) if isinstance(number, str) else number
            self.flows.append((_ns(event["ts"]), self.track(event), _whole(number), int(kind), phase == "s"))
        elif phase == "i" and event.get("name") == "[memory]":
            self.add_memory(event, args)
        elif phase == "X" and category != SPAN_CATEGORY:
            if "dur" not in event or event["dur"] < 0:
                self.lost["negative-duration"] = self.lost.get("negative-duration", 0) + 1
            elif category in DEVICE_CATEGORIES:
                self.add_device(event, args, DEVICE_CATEGORIES[category])
            else:
                self.add_host(event, args, HOST_CATEGORIES.get(category, HostKind.OTHER))

    def add_memory(self, event: dict[str, Any], args: dict[str, Any]) -> None:
        get = args.get
        self.memory.append(
            (_ns(event["ts"]), self.track(event), get("Device Type", -1), get("Device Id", -1), get("Addr", 0) % 2**64)
            + (get("Bytes", 0), get("Total Allocated", -1), get("Total Reserved", -1))
        )

    def add_host(self, event: dict[str, Any], args: dict[str, Any], kind: HostKind) -> None:
        external = args.get("External id", args.get("external id"))
        self.host.append(
            (_ns(event["ts"]), _ns(event["dur"]), self.text(event.get("name", "")), self.track(event), int(kind))
            + tuple(_whole(args.get(k)) for k in ("correlation",))
            + (_whole(external), _whole(args.get("Sequence number")), _whole(args.get("Fwd thread id")))
            + (self.text(args.get("Input Dims")), self.text(args.get("Input type")), self.text(args.get("Call stack")))
            + (_whole(args.get("Python id")), _whole(args.get("Python parent id")))
        )

    def add_device(self, event: dict[str, Any], args: dict[str, Any], kind: int) -> None:
        get = args.get
        pid = event.get("pid")
        collective = self.collectives[msgspec.json.encode(args)] if "Collective name" in args else -1
        self.device.append(
            (_ns(event["ts"]), _ns(event["dur"]), self.text(event.get("name", "")), self.track(event), int(kind))
            + (_whole(get("device", pid)), _whole(get("stream")), _whole(get("correlation")))
            + (_whole(get("External id", get("external id"))), _whole(get("bytes")))
            + (float(get("blocks per SM", "nan")), float(get("est. achieved occupancy %", "nan")))
            + (_whole(get("graph id")), collective)
        )

    def table(self, cls: Any, rows: list[tuple[Any, ...]]) -> Any:
        dtypes = {"Int64": "i8", "Int32": "i4", "Int16": "i2", "Int8": "i1", "UInt64": "u8", "Float32": "f4"}
        columns = list(zip(*rows, strict=True)) or [()] * len(cls.__annotations__)
        arrays = [
            np.array(column, dtype=dtypes.get(kind, "?"))
            for column, kind in zip(columns, cls.__annotations__.values(), strict=True)
        ]
        order = (
            np.lexsort((-arrays[1], arrays[0]))
            if cls in (HostRows, DeviceRows)
            else np.argsort(arrays[0], kind="stable")
        )
        return cls(*(array[order] for array in arrays))

    def build(self, document: dict[str, Any]) -> Trace:
        events = document.get("traceEvents") or []
        for event in events:
            self.add(event)
        tracks = []
        for pid, tid in self.tracks:
            process, thread = self.named.get((pid, None), {}), {}
            for key in ((pid, tid), (pid, str(tid))):
                thread = self.named.get(key, thread)
            tracks.append(
                Track(pid, tid, process.get("process_name"), process.get("process_labels"), thread.get("thread_name"))
            )
        distributed = document.get("distributedInfo") or {}
        warnings = tuple(TraceWarning(code, count, f"{count} events excluded") for code, count in self.lost.items())
        flag = lambda key: None if key not in document else bool(document[key])  # noqa: E731
        facts = TraceFacts(
            self.path.name, self.path.stat().st_size, self.size, len(events), "salvaged" if warnings else "complete", warnings,
            document.get("pytorch_version"), document.get("schemaVersion"), distributed.get("rank"), distributed.get("world_size"),
            tuple(Device(d.get("id", i), d.get("name", ""), d) for i, d in enumerate(document.get("deviceProperties") or [])),
            document.get("baseTimeNanoseconds"), distributed, flag("with_stack"), flag("record_shapes"), flag("profile_memory"),
        )  # fmt: skip
        collectives = [msgspec.json.decode(text) for text in self.collectives]
        return Trace(
            facts, list(self.texts), tracks, collectives,
            self.table(HostRows, self.host), self.table(DeviceRows, self.device),
            self.table(MemoryRows, self.memory), self.table(FlowRows, self.flows), self.path,
        )  # fmt: skip
