"""The walk through a file: where its list of events begins, from unit to unit to its end, and what stands around it.

A unit is cut where the layout of the file separates two events. A cut inside a text or a nested value leaves the
unit unterminated or unbalanced, and a strict decoder refuses it: a unit that is accepted was cut rightly.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from tracelock.trace.columnise import Batch
from tracelock.trace.decode import Decoder
from tracelock.trace.salvage import Salvager
from tracelock.trace.scan import NOT_JSON, is_object, separator
from tracelock.trace.window import MOST, Window

Keep: TypeAlias = Callable[[list[Batch]], None]
Tick: TypeAlias = Callable[[int], None]

UNIT: Final = 512 << 10
MOST_OF_EVENT: Final = 4 << 20  # text that may belong to one event
_KEY: Final = re.compile(rb'"traceEvents"\s*:\s*\[')
_GAP: Final = re.compile(rb"[\s,]*")
_SPACE: Final = re.compile(rb"\s*")
_BOM: Final = b"\xef\xbb\xbf"


class Walker:
    """Feeds a decoder with the events of a window, and collects the metadata around them.

    Parameters
    ----------
    window
        The bytes of the file.
    decoder
        Makes columns of them.
    keep
        Called with the rows of each unit.
    tick
        Called after each unit with the bytes of the file that were read.
    """

    def __init__(self, window: Window, decoder: Decoder, keep: Keep, tick: Tick | None = None) -> None:
        self.window, self.decoder, self.keep, self.tick = window, decoder, keep, tick
        self.tally = decoder.context.tally
        self.separator: bytes | None = None
        self.metadata = b""  # the text around the lists of events, which are empty in it
        self._salvager = Salvager(decoder)

    def find_events(self) -> str:
        """Move to the first event; return the form: ``object``, ``list``, ``metadata`` (no list) or ``other``."""
        window = self.window
        window.fill(len(_BOM))
        if window.buffer.startswith(_BOM, window.start):
            window.use(len(_BOM))
        self._skip(_SPACE)
        first = bytes(window.buffer[window.start : window.start + 1]) if len(window) else b""
        if first == b"[":
            window.use(1)
            return "list"
        if first != b"{":
            return "other"
        return "object" if self._find_list() else "metadata"

    def _find_list(self) -> bool:
        """Move behind the bracket that opens the next list of events of the object, if there is one."""
        wanted = UNIT
        while True:
            whole = not self.window.fill(wanted)
            text = self.window.text()
            for match in _KEY.finditer(text):
                if is_object(self.metadata + text[: match.end()] + b"]}"):
                    return self._enter(text[: match.end()])
            if whole or wanted > MOST:
                break
            wanted *= 2
        damaged = None if self.metadata else _KEY.search(text)
        return damaged is not None and self._enter(text[: damaged.end()])

    def _enter(self, text: bytes) -> bool:
        self.metadata += text
        self.window.use(len(text))
        return True

    def walk(self) -> bool:
        """Decode all events; return whether the list was closed, or ended at a limit that lies between two events."""
        window = self.window
        self.learn_separator()
        while True:
            window.fill(UNIT + 1)
            commas = self._skip(_GAP)
            if not len(window):
                return False
            closed = window.buffer[window.start] == ord("]")
            self.tally.add("bad-punctuation", commas > (not closed))
            if closed:
                window.use(1)
                return True
            if not self._unit() and self._careful():
                return True
            if self.tick is not None:
                self.tick(window.source.done)

    def learn_separator(self) -> bytes | None:
        """Return how the file separates events, judged by the first two of them."""
        if self.separator is None:
            self.window.fill(UNIT)
            self.separator = separator(self.window.text()[:UNIT])
        return self.separator

    @property
    def lost_end(self) -> bool:
        """Whether an event was open where the text ended."""
        return self._salvager.lost_end

    def _skip(self, pattern: re.Pattern[bytes]) -> int:
        """Move over space, of which more may follow the window; return the number of commas in it."""
        window, commas = self.window, 0
        while match := pattern.match(window.buffer, window.start, window.end):
            commas += match.group().count(b",")
            window.use_to(match.end())
            if len(window) or not window.fill(1):
                break
        return commas

    def _cut(self, length: int) -> int:
        """Return the position behind the last event that ends within `length` bytes, or -1."""
        window = self.window
        if self.separator is None:
            return -1
        found = window.buffer.rfind(self.separator, window.start, min(window.start + length, window.end))
        return found if found < 0 else found + self.separator.index(b"}") + 1

    def _unit(self) -> bool:
        """Decode one unit in place, if it is sound."""
        window, stop = self.window, self._cut(UNIT)
        if stop < 0:
            return False
        buffer, first = window.buffer, window.start - 1
        borrowed = buffer[first], buffer[stop]
        buffer[first], buffer[stop] = b"[]"
        try:
            self.keep(self.decoder.decode(memoryview(buffer)[first : stop + 1]))
        except NOT_JSON:
            return False
        finally:
            buffer[first], buffer[stop] = borrowed
        window.use_to(stop)
        return True

    def _careful(self) -> bool:
        """Decode what lies ahead with the salvager; return whether the list is closed."""
        window, length = self.window, UNIT
        while True:
            stop = self._cut(length)
            text = bytes(window.buffer[window.start : stop if stop >= 0 else min(window.start + length, window.end)])
            at_end = window.at_end and len(text) == len(window)
            patient = length < MOST_OF_EVENT
            used, closed, batches = self._salvager.salvage(text, at_end, patient, between=stop >= 0)
            if used:
                self.keep(batches)
                window.use(used)
                return closed
            length *= 2
            window.fill(length)

    def finish(self, closed: bool) -> None:
        """Collect what follows the list (or the whole of a file without one), and read further lists of events."""
        while closed:
            self.metadata += b"]" * bool(self.window.passed)
            if not self._find_list():
                self.metadata += self.window.text()
                self.window.use(len(self.window))
                return
            self.tally.add("repeated-events")
            closed = self.walk()
        self.tally.add("cut-off")
