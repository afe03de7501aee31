"""Who holds a device's memory at its peak, when an allocation failed, and at the end: PyTorch's memory snapshots.

A snapshot (``torch.cuda.memory._dump_snapshot``) has the allocator's blocks as they are, and, where
``_record_memory_history`` was on, its last allocations and frees. What was held at a moment is what was allocated up to
it and freed after it: going back from the blocks of the end, as the record may have lost its beginning. Bytes are those
that were asked for; memory counts as held until the allocator has it back (``free_completed``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tracelock.errors import Problem, TracelockError
from tracelock.trace.pickled import read_plain_pickle

ALLOCATED, FREED, FAILED = "alloc", "free_completed", "oom"
NO_STACK = "(no stack was recorded)"
FRAMES = 12  # of a stack, innermost first
_LIBRARIES = ("/site-packages/", "/dist-packages/", "/torch/", "<frozen", "??")


class _Block(msgspec.Struct):
    size: int
    state: str
    address: int | None = None
    requested_size: int | None = None
    frames: list[Any] = []


class _Segment(msgspec.Struct):
    device: int
    address: int
    total_size: int
    blocks: list[_Block]


class _Event(msgspec.Struct):
    action: str
    addr: int = 0
    size: int = 0
    frames: list[Any] = []
    device_free: int | None = None


class _Snapshot(msgspec.Struct):
    segments: list[_Segment]
    device_traces: list[list[_Event]] = []


@dataclass(frozen=True)
class Holder:
    """Memory that one place in the code asked for and still held."""

    place: str  # the innermost frame of the user's own code; NO_STACK without
    bytes: int
    blocks: int
    stack: tuple[str, ...]  # of its largest block, innermost first


@dataclass(frozen=True)
class Moment:
    """What was held at one moment."""

    bytes: int
    holders: tuple[Holder, ...]  # the largest first
    asked_bytes: int | None = None  # of the allocation that failed
    free_bytes: int | None = None  # on the device then


@dataclass(frozen=True)
class DeviceMemory:
    """The snapshot of one device."""

    device: int
    reserved_bytes: int  # segments, at the end
    end: Moment
    peak: Moment | None  # of the recorded time; None where no history was recorded
    failures: tuple[Moment, ...]
    recorded: int  # allocations and frees in the record


_Held = dict[int, tuple[int, list[Any]]]  # bytes and frames by address


def read_snapshot(path: Path) -> tuple[DeviceMemory, ...]:
    """Return who holds the memory of each device that the snapshot in `path` knows.

    Raises
    ------
    TracelockError
        If the file cannot be read or is no snapshot.
    """
    hint = "expected what torch.cuda.memory._dump_snapshot writes"
    try:
        found = msgspec.convert(read_plain_pickle(path), _Snapshot)
        histories = dict(enumerate(found.device_traces))
        known = {segment.device for segment in found.segments} | {key for key, each in histories.items() if each}
        return tuple(_device(each, found.segments, histories.get(each, [])) for each in sorted(known))
    except (msgspec.ValidationError, RecursionError, OverflowError) as error:
        raise TracelockError(Problem(str(path), f"is no memory snapshot: {error}", hint)) from None


def _device(device: int, segments: Sequence[_Segment], events: Sequence[_Event]) -> DeviceMemory:
    mine = [segment for segment in segments if segment.device == device]
    end = _held_at_end(mine)
    changes = [event.size * ((event.action == ALLOCATED) - (event.action == FREED)) for event in events]
    totals = _bytes(end) - np.cumsum([0, *reversed(changes)])[::-1]  # before each event, and at the end
    counted = sum(map(bool, changes))
    failed = [place for place, event in enumerate(events) if event.action == FAILED]
    return DeviceMemory(
        device=device,
        reserved_bytes=sum(segment.total_size for segment in mine),
        end=_moment(end),
        peak=_moment(_held(end, events, int(totals.argmax()))) if counted else None,
        failures=tuple(
            _moment(_held(end, events, place), events[place].size, events[place].device_free) for place in failed
        ),
        recorded=counted,
    )


def _held_at_end(segments: Sequence[_Segment]) -> _Held:
    held: _Held = {}
    for segment in segments:
        place = segment.address
        for block in segment.blocks:
            address = place if block.address is None else block.address
            place += block.size
            if block.state.startswith("active"):
                held[address] = (block.size if block.requested_size is None else block.requested_size, block.frames)
    return held


def _held(end: Mapping[int, tuple[int, list[Any]]], events: Sequence[_Event], moment: int) -> _Held:
    """Return what was held before the event at the place `moment`: what comes after it taken back, last first."""
    held = dict(end)
    for event in reversed(events[moment:]):
        if event.action == ALLOCATED:
            held.pop(event.addr, None)
        elif event.action == FREED:
            held[event.addr] = (event.size, [])
    for event in events[:moment]:  # the frames of a free are those of whoever freed
        if event.action == ALLOCATED and event.addr in held and event.frames:
            held[event.addr] = (held[event.addr][0], event.frames)
    return held


def _bytes(held: _Held) -> int:
    return sum(size for size, _ in held.values())


def _moment(held: _Held, asked: int | None = None, free: int | None = None) -> Moment:
    groups: dict[str, list[tuple[int, list[Any]]]] = {}
    for size, frames in held.values():
        groups.setdefault(_place(frames), []).append((size, frames))
    holders = [_holder(place, blocks) for place, blocks in groups.items()]
    return Moment(_bytes(held), tuple(sorted(holders, key=lambda each: (-each.bytes, each.place))), asked, free)


def _holder(place: str, blocks: Sequence[tuple[int, list[Any]]]) -> Holder:
    largest = max(blocks, key=lambda block: block[0])
    stack = tuple(_frame(frame) for frame in largest[1][:FRAMES])
    return Holder(place, sum(size for size, _ in blocks), len(blocks), stack)


def _place(frames: Sequence[Any]) -> str:
    """Return the innermost frame that is no library's, else the innermost one."""
    told = [_frame(frame) for frame in frames]
    own = [each for each in told if ".py:" in each and not any(library in each for library in _LIBRARIES)]
    return (own or told or [NO_STACK])[0]


def _frame(frame: Any) -> str:
    if not isinstance(frame, Mapping):
        return str(frame)
    return f"{frame.get('filename', '??')}:{frame.get('line', 0)} {frame.get('name', '??')}"
