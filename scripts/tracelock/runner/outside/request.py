"""What the process is asked for: the file that TRACELOCK_OUTSIDE names."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True)
class Request:
    """What ``tracelock profile`` or ``watch`` asks of the processes below it.

    Parameters
    ----------
    folder
        Each process that makes steps writes a folder of its own below it, named by its process id.
    watch
        Steps are streamed to a file, and the profiler runs only when it is called for.
    step
        ``module:function`` that is one step, or None: steps are the optimizer's.
    warmup
        Steps before the timed part; None: until they are steady.
    timed
        Timed steps; None: enough of them by their length.
    active, record_shapes, profile_memory, with_stack
        As for torch.profiler.
    stop_after
        Whether the script is ended when the window has been recorded.
    limit_s
        Seconds for warm-up, timed and recorded steps; where steps are too long for that, fewer are timed.
    settings
        Settings that are applied from outside.
    """

    folder: str
    watch: bool = False
    step: str | None = None
    warmup: int | None = None
    timed: int | None = None
    active: int | None = None
    record_shapes: bool = True
    profile_memory: bool = True
    with_stack: bool = False
    stop_after: bool = False
    limit_s: float | None = None
    settings: dict[str, Any] = field(default_factory=dict)


def read_request(path: str) -> Request:
    """Return the request in a file; keys that this version does not know are passed over."""
    with open(path, encoding="utf-8") as stream:
        values = json.load(stream)
    known = {item.name for item in fields(Request)}
    return Request(**{name: value for name, value in values.items() if name in known})
