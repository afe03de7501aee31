"""A window that slides over the bytes of a source: one buffer, used again and again."""

from __future__ import annotations

from typing import Final

from tracelock.trace.source import Source

SIZE: Final = 2 << 20
MOST: Final = 64 << 20  # the largest single event, or stretch of metadata, that is looked at as a whole


class Window:
    """Bytes `buffer[start:end]` of a source, of which `start` moves on as they are used.

    At least one byte before `start` always exists, so that a bracket can be put there.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.buffer = bytearray(SIZE)
        self.start = self.end = 1
        self.at_end = False
        self.passed = 0  # bytes of JSON before `start`

    def __len__(self) -> int:
        return self.end - self.start

    def fill(self, wanted: int) -> bool:
        """Read on until `wanted` bytes are there; return False if the source ended before that."""
        if len(self) < wanted and not self.at_end:
            self._make_room(wanted)
            with memoryview(self.buffer) as view:
                while not self.at_end and self.end < len(view):
                    count = self.source.readinto(view[self.end :])
                    self.end += count
                    self.at_end = count == 0
        return len(self) >= wanted

    def _make_room(self, wanted: int) -> None:
        rest = bytes(self.buffer[self.start : self.end])
        if wanted >= len(self.buffer):
            self.buffer = bytearray(max(2 * len(self.buffer), 2 * wanted))
        self.buffer[1 : 1 + len(rest)] = rest
        self.start, self.end = 1, 1 + len(rest)

    def use(self, count: int) -> None:
        """Move on by `count` bytes."""
        self.start += count
        self.passed += count

    def use_to(self, position: int) -> None:
        """Move on to `position` in the buffer."""
        self.use(position - self.start)

    def text(self) -> bytes:
        """Return a copy of the bytes in the window."""
        return bytes(self.buffer[self.start : self.end])
