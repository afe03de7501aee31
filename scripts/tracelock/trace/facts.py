"""What a file says of itself around its events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tracelock.trace.columns import Device, TraceFacts, Track
from tracelock.trace.context import Context
from tracelock.trace.mend import BeyondMendingError, mend
from tracelock.trace.scan import NOT_JSON, members
from tracelock.trace.tally import Tally


def read_metadata(text: bytes, closed: bool, tally: Tally) -> dict[str, Any]:
    """Return the keys of the object around the events.

    Parameters
    ----------
    text
        The object as it stands in the file, its lists of events empty; or what stands around a bare list.
    closed
        Whether the list of events was closed: then the object should be whole.
    tally
        Counts what is missing, mended or left over.
    """
    start = text.find(b"{")
    if start < 0 or text.lstrip()[:1] == b"]":
        tally.add("trailing-data", len(text.lstrip(b"] \t\r\n,")))
        return {}
    found = members(text, start + 1)
    if found.closed is not None:
        whole, rest = text[start : found.closed + 1], text[found.closed + 1 :].strip()
        tally.add("trailing-data", len(rest))
    else:
        whole = text[start : found.commas[-1] if found.commas and found.open else None].rstrip(b" \t\r\n,") + b"}"
        tally.add("cut-off", closed)
    keys = _object(whole)
    if keys is None:
        keys = _mended(whole, tally)
    return keys


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        keys = msgspec.json.decode(text)
    except NOT_JSON:
        return None
    return keys if isinstance(keys, dict) else None


def _mended(text: bytes, tally: Tally) -> dict[str, Any]:
    """Return the keys of a damaged object: after mending, or those members that can be read on their own."""
    try:
        mended, counts = mend(text)
        keys = _object(mended)
    except BeyondMendingError:
        keys = None
    if keys is not None:
        tally.merge(counts)
        return keys
    keys = {}
    commas = members(text, 1).commas
    for start, stop in zip([0, *commas], [*commas, len(text) - 1], strict=True):
        member = _object(b"{" + text[start + 1 : stop] + b"}")
        tally.add("bad-metadata", member is None)
        keys |= member or {}
    return keys


def facts(path: Path, keys: Mapping[str, Any], context: Context, json_bytes: int) -> TraceFacts:
    """Return what the file says of itself; a key of an unexpected type is as good as absent."""
    distributed = keys.get("distributedInfo")
    distributed = distributed if isinstance(distributed, dict) else {}
    lost = Counter(context.tally.counts())
    return TraceFacts(
        file=path.name,
        bytes=path.stat().st_size,
        json_bytes=json_bytes,
        events=context.events + lost["not-an-event"] + lost["unreadable-event"],
        quality=context.tally.quality(),
        warnings=context.tally.warnings(),
        torch_version=_text(keys, "pytorch_version", "torch_version"),
        schema_version=_whole(keys.get("schemaVersion")),
        rank=_whole(distributed.get("rank")),
        world_size=_whole(distributed.get("world_size")),
        devices=_devices(keys.get("deviceProperties")),
        base_time_ns=_whole(keys.get("baseTimeNanoseconds")),
        distributed=distributed,
        with_stack=_flag(keys, "with_stack"),
        record_shapes=_flag(keys, "record_shapes"),
        profile_memory=_flag(keys, "profile_memory"),
        unused=dict(sorted(context.unused.items())),
        windows=tuple(sorted(context.spans)),
    )


def _whole(value: Any) -> int | None:
    if isinstance(value, str) and value.isdecimal() and value.isascii():
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def _text(keys: Mapping[str, Any], *names: str) -> str | None:
    return next((keys[name] for name in names if isinstance(keys.get(name), str)), None)


def _flag(keys: Mapping[str, Any], name: str) -> bool | None:
    value = keys.get(name)
    return bool(value) if isinstance(value, int) else None


def _devices(value: Any) -> tuple[Device, ...]:
    found = [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
    ids = [_whole(entry.get("id")) for entry in found]
    return tuple(
        Device(place if number is None else number, str(entry.get("name", "")), entry)
        for place, (number, entry) in enumerate(zip(ids, found, strict=True))
    )


def tracks(context: Context) -> list[Track]:
    """Return the lanes with the names that the metadata events give to their processes and threads."""
    labels = context.labels
    return [
        Track(
            pid=pid,
            tid=tid,
            process_name=labels.get((pid, None), {}).get("process_name"),
            process_labels=labels.get((pid, None), {}).get("process_labels"),
            thread_name=labels.get((pid, tid), {}).get("thread_name"),
        )
        for pid, tid in context.tracks.lanes
    ]
