"""Small traces as files, sound and damaged, for the tests of the reader."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tracelock.trace import Trace, read_trace

HEAD = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Test GPU", "numSms": 80}]}
TAIL = {"traceName": "x.json", "displayTimeUnit": "ms", "baseTimeNanoseconds": 1_700_000_000_000_000_000}
LAYOUTS = ("kineto", "indent", "compact")


def op(number: int, **more: Any) -> dict[str, Any]:
    """Return an operator that starts at 1000 + 10 * number µs, for 5 µs."""
    event = {"ph": "X", "cat": "cpu_op", "name": f"aten::op{number}", "pid": 100, "tid": 100}
    return event | {"ts": 1000 + 10 * number, "dur": 5, "args": {"External id": number, "Input Dims": [[4, 4]]}} | more


def kernel(number: int, **more: Any) -> dict[str, Any]:
    """Return a kernel that starts at 1003 + 10 * number µs, for 6 µs."""
    args = {"device": 0, "stream": 7, "correlation": number, "External id": number, "blocks per SM": 1.5}
    event = {"ph": "X", "cat": "kernel", "name": f"kernel{number}", "pid": 0, "tid": 7}
    return event | {"ts": 1003 + 10 * number, "dur": 6, "args": args} | more


def events(count: int) -> list[dict[str, Any]]:
    """Return operators and kernels in turn."""
    return [op(number) if number % 2 else kernel(number) for number in range(count)]


def render(event: Any, layout: str) -> str:
    """Return an event as it stands in a file."""
    if layout == "compact" or not isinstance(event, dict):
        return json.dumps(event)
    if layout == "indent":
        return json.dumps(event, indent=1)
    members = ",\n    ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in event.items())
    return f"  {{\n    {members}\n  }}"


def document(rendered: Sequence[str], layout: str, head: Any = None, tail: Any = None) -> str:
    """Return the text of a trace of these events."""
    between = ", " if layout == "compact" else ",\n"
    before = json.dumps(HEAD if head is None else head)[:-1]
    after = json.dumps(TAIL if tail is None else tail)[1:]
    return f'{before}, "traceEvents": [\n{between.join(rendered)}\n], {after}'


def read_text(folder: Path, text: str | bytes, name: str = "trace.json") -> Trace:
    """Read a trace from its text."""
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return read_trace(path)


def names(trace: Trace) -> set[str]:
    """Return the names of all rows of a trace."""
    return {trace.texts[i] for table in (trace.host, trace.device) for i in table.name.tolist()}


def counts(trace: Trace) -> dict[str, int]:
    """Return the counts of the warnings."""
    return {warning.code: warning.count for warning in trace.facts.warnings}
