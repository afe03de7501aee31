"""Begin and end events (ph B, E), which some exporters write, become complete ones (the Trace Event Format's duration
events): an end closes the innermost open begin of its thread. Halves may lie in different units of a file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from tracelock.trace import times
from tracelock.trace.events import NO_JSON, Event
from tracelock.trace.tally import Tally

Open = tuple[Event, int]  # a begin event, and its time in ns


class Pairs:
    """The begin events of a file that are still open, by thread."""

    def __init__(self) -> None:
        self.open: dict[tuple[Any, Any], list[Open]] = {}
        self.used = False

    def close(self, events: Sequence[Event], tally: Tally, skip: Callable[[str], None]) -> list[Event]:
        """Return `events` with begin and end events joined; a pair stands where its end stood.

        A begin event that this list does not close waits for the next one; `skip` is told of each end that was used.
        """
        self.used = True
        made: list[Event] = []
        for event in events:
            if event.ph not in "BE":
                made.append(event)
                continue
            time = _nanoseconds(event, tally)
            waiting = self.open.setdefault((event.pid, event.tid), [])
            if time == times.MISSING:
                tally.add("no-timestamp")
            elif event.ph == "B":
                waiting.append((event, time))
            elif not waiting:
                tally.add("unpaired-begin-end")
            else:
                made.append(_joined(*waiting.pop(), event, time))
                tally.add("begin-end-rows")
                skip("E")
        return made

    def copy(self) -> dict[tuple[Any, Any], list[Open]]:
        """Return the open events as they are, to go back to."""
        return {lane: list(waiting) for lane, waiting in self.open.items()}

    def finish(self, tally: Tally) -> None:
        """Count the begin events that nothing closed."""
        tally.add("unpaired-begin-end", sum(map(len, self.open.values())))


def _joined(begin: Event, start: int, end: Event, stop: int) -> Event:
    """Return a complete event; its times are written as those of `end`, which is of the unit being read."""
    digits = isinstance(end.ts, type(NO_JSON))
    written = msgspec.Raw(f"{start // 1000}.{start % 1000:03d}".encode()) if digits else begin.ts
    joined = type(end)(ph="X", cat=begin.cat, name=begin.name, pid=begin.pid, tid=begin.tid)
    joined.ts, joined.dur, joined.args, joined.id = written, (stop - start) / 1000, begin.args, begin.id
    return joined


def _nanoseconds(event: Event, tally: Tally) -> int:
    if isinstance(event.ts, type(NO_JSON)):
        return int(times.nanoseconds_of_digits([event.ts], tally)[0])
    return int(times.nanoseconds([event.ts], tally, digits_kept=False)[0])
