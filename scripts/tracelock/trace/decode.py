"""The decoder: the JSON of some events in, batches of columns out.

`Decoder` is the whole interface, so that a compiled one can take the place of `StructDecoder`.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from tracelock.trace.columnise import Batch, batches
from tracelock.trace.context import Context
from tracelock.trace.events import event_decoder
from tracelock.trace.kinds import CATEGORIES
from tracelock.trace.times import NeedDigitsError

_MOST_CATEGORIES: Final = 256


class Decoder(Protocol):
    """Bytes to batches of columns."""

    context: Context

    def decode(self, text: bytes | memoryview) -> list[Batch]:
        """Return the rows of the events in the JSON array `text`; raises one of `scan.NOT_JSON` for anything else."""
        ...

    def learn(self, category: str) -> None:
        """Accept `category` from now on."""
        ...


class StructDecoder:
    """Decodes with msgspec into structs, and makes columns of them.

    Categories are words of a known list, which decode fastest; `learn` adds one. Times are floats until one of them
    turns out to need more digits than a float64 has; from there on the digits are kept.
    """

    def __init__(self) -> None:
        self.context = Context()
        self._categories: list[str] | None = list(CATEGORIES)
        self._digits = False
        self._events: Any = event_decoder()

    def learn(self, category: str) -> None:
        """Accept `category` from now on; where a file has hundreds of them, accept any."""
        if self._categories is not None and category not in self._categories:
            self._categories.append(category)
            if len(self._categories) > _MOST_CATEGORIES:
                self._categories = None
            self._events = event_decoder(self._categories, self._digits)

    def decode(self, text: bytes | memoryview) -> list[Batch]:
        """Return the rows of the events in the JSON array `text`; raises one of `scan.NOT_JSON` for anything else."""
        try:
            return batches(self.context, self._events.decode(text), text)
        except NeedDigitsError:
            self._digits = True
            self._events = event_decoder(self._categories, exact=True)
            return batches(self.context, self._events.decode(text), text)
