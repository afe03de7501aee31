"""Copying of chosen events from one trace into another, as they stand in the file, in one pass over it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Raw

from tracelock.trace.columnise import Batch
from tracelock.trace.columns import Int64
from tracelock.trace.context import Context
from tracelock.trace.events import Event, event_decoder
from tracelock.trace.extract import durations, starts
from tracelock.trace.facts import read_metadata
from tracelock.trace.source import open_source
from tracelock.trace.walk import Tick, Walker
from tracelock.trace.window import Window

Choose: TypeAlias = Callable[[Sequence[Event], Int64, Int64], Sequence[bool]]
"""Tells which events to copy, from the events, their times and their durations (ns, `times.MISSING` without)."""

_elements: Final = msgspec.json.Decoder(list[Raw])
_EVENTS_KEY: Final = "traceEvents"


class Copied(NamedTuple):
    """What was copied."""

    seen: int
    kept: int


class _Copier:
    """Takes the place of a decoder: writes the text of chosen events, and makes no rows."""

    def __init__(self, choose: Choose, write: Callable[[bytes], Any]) -> None:
        self.context = Context()
        self.kept = 0
        self._choose, self._write = choose, write
        self._events = event_decoder(None, exact=True)

    def learn(self, category: str) -> None:
        """Accept any category already."""

    def decode(self, text: bytes | memoryview) -> list[Batch]:
        """Write the chosen events of the JSON array `text`."""
        events = self._events.decode(text)
        chosen = self._choose(events, starts(self.context, events), durations(self.context, events))
        self.context.events += len(events)
        if any(chosen):
            texts = _elements.decode(text)
            kept = [bytes(raw) for raw, wanted in zip(texts, chosen, strict=True) if wanted]
            self._write(b",\n  " * bool(self.kept) + b",\n  ".join(kept))
            self.kept += len(kept)
        return []


def copy_events(path: Path, write: Callable[[bytes], Any], choose: Choose, tick: Tick | None = None) -> Copied:
    """Write a trace of the chosen events of another, and of its metadata.

    Parameters
    ----------
    path
        The trace to copy from; damaged events are copied as they were mended.
    write
        Is given the text of the new trace, piece by piece.
    choose
        Tells for each event of a unit whether to copy it.
    tick
        Called with the bytes of the file that were read.

    Raises
    ------
    TracelockError
        If the file cannot be read.
    """
    copier = _Copier(choose, write)
    write(b'{\n"traceEvents": [\n  ')
    with closing(open_source(path)) as source:
        walker = Walker(Window(source), copier, lambda batches: None, tick)
        closed = walker.walk() if walker.find_events() in ("object", "list") else True
        walker.finish(closed)
    keys = read_metadata(walker.metadata, closed, copier.context.tally)
    write(b"\n]")
    for key, value in keys.items():
        if key != _EVENTS_KEY:
            write(b",\n" + msgspec.json.encode(key) + b": " + msgspec.json.encode(value))
    write(b"\n}\n")
    return Copied(copier.context.events, copier.kept)
