"""Copies and sets by direction and kind of host memory, with their bandwidth."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import numpy as np

from tracelock.analysis.groups import group
from tracelock.analysis.intervals import Mask
from tracelock.analysis.model import Transfer
from tracelock.trace.columns import DeviceKind, Int64, Trace

_SHORT: Final = re.compile(r"(?<![A-Za-z])(HtoD|DtoH|DtoD|HtoH|PtoP|HtoA|AtoH|AtoD|DtoA|AtoA)(?![a-z])")
_WORDS: Final = re.compile(r"(Host|Device|Peer)_?To_?(Host|Device|Peer)", re.IGNORECASE)
_ENDS: Final = re.compile(r"\((\w+) -> (\w+)\)")
_SIDES: Final = {"Pageable": "H", "Pinned": "H", "Host": "H", "Device": "D", "Managed": "D"}
MEMSET: Final = "Memset"
UNTOLD: Final = "other"


def direction(name: str) -> str:
    """Return the direction that a copy's name tells: "HtoD", "DtoH", "DtoD", "PtoP", "HtoH"; "other" if it does not.

    Written as CUPTI does (``Memcpy HtoD (Pinned -> Device)``), as ROCm does (``CopyHostToDevice``,
    ``MEMORY_COPY_HOST_TO_DEVICE``, ``Memcpy HtoD (Host -> Device)``) and as Level Zero does (``M2D`` for memory).
    """
    if found := _SHORT.search(name):
        return found.group(1)
    if found := _WORDS.search(name):
        return f"{found.group(1)[0].upper()}to{found.group(2)[0].upper()}"
    if found := re.search(r"\b([MHDS])2([MHDS])\b", name):
        source, target = (side.translate(str.maketrans("MS", "HD")) for side in found.groups())
        return f"{source}to{target}"
    if (found := _ENDS.search(name)) and {*found.groups()} <= set(_SIDES):
        return f"{_SIDES[found.group(1)]}to{_SIDES[found.group(2)]}"
    return "DtoD" if "copyBuffer" in name else UNTOLD


def host_memory(name: str) -> str | None:
    """Return "pageable" or "pinned" where a copy's name tells the host's side, else None."""
    found = _ENDS.search(name)
    sides = {side.lower() for side in found.groups()} if found else set()
    return next((kind for kind in ("pageable", "pinned") if kind in sides), None)


def transfers(trace: Trace, chosen: Mask) -> tuple[Transfer, ...]:
    """Return copies and sets among the `chosen` device rows by direction and host memory, most expensive first."""
    merged: dict[tuple[str, str | None], Int64] = {}
    for key, sums in _by_name(trace, chosen):
        merged[key] = merged.get(key, np.zeros(4, np.int64)) + sums
    ordered = sorted(merged.items(), key=lambda item: (-int(item[1][1]), item[0][0], item[0][1] or ""))
    return tuple(_transfer(*key, *(int(each) for each in sums)) for key, sums in ordered)


def _by_name(trace: Trace, chosen: Mask) -> Iterator[tuple[tuple[str, str | None], Int64]]:
    """Yield what a name tells, and its calls, time (ns), bytes and time of rows that tell their bytes."""
    device = trace.device
    rows = np.flatnonzero(chosen & ((device.kind == DeviceKind.MEMCPY) | (device.kind == DeviceKind.MEMSET)))
    groups = group(device.name[rows], device.kind[rows])
    sizes, duration = device.bytes[rows], device.duration[rows]
    told = np.maximum(sizes, 0)
    columns = np.stack(
        (groups.counts, groups.total(duration), groups.total(told), groups.total(np.where(sizes >= 0, duration, 0))),
        axis=1,
    )
    for name, kind, sums in zip(*groups.keys, columns, strict=True):
        text = trace.texts[name] if name >= 0 else ""
        is_set = kind == DeviceKind.MEMSET
        yield (MEMSET, None) if is_set else (direction(text), host_memory(text)), sums


def _transfer(kind: str, memory: str | None, calls: int, time: int, size: int, sized_time: int) -> Transfer:
    return Transfer(
        kind=kind,
        memory=memory,
        calls=calls,
        bytes=size if sized_time or size else None,
        total_us=time / 1000,
        bandwidth_gb_per_s=size / sized_time if size and sized_time else None,  # bytes per ns
    )
