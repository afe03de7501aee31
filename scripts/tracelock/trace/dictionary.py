"""Dictionaries of texts, tracks and collectives: each different value once, columns hold its position."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tracelock.trace.scan import NOT_JSON
from tracelock.trace.tally import Tally

NO_NAME: Final = "[no name]"
STACK_BYTES: Final = 64 << 20  # of different call stacks; beyond that further ones are dropped and counted


class Texts(dict[Any, int]):
    """Ids of texts, looked up by what the decoder hands out: a str, or the raw JSON of a value as bytes.

    Raw JSON is unescaped, or written compactly, once for each different spelling. A new key is added on look-up.
    """

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self.values_in_order: list[str] = []
        self._ids: dict[str, int] = {}
        self.stack_bytes = 0
        super().__init__({b"": -1})

    def __missing__(self, key: Any) -> int:
        number = self[key] = self.number(_text_of(key, self.tally))
        return number

    def number(self, text: str) -> int:
        """Return the id of `text`."""
        number = self._ids.setdefault(text, len(self._ids))
        if number == len(self.values_in_order):
            self.values_in_order.append(text)
        return number


class Stacks(dict[bytes, int]):
    """Ids of call stacks in `texts`, which stops taking new ones at `STACK_BYTES`: they can be millions."""

    def __init__(self, texts: Texts, limit: int = STACK_BYTES) -> None:
        self.texts, self.left = texts, limit
        super().__init__({b"": -1})

    def __missing__(self, key: bytes) -> int:
        if self.left < len(key):
            self.texts.tally.add("stacks-capped")
            return -1
        self.left -= len(key)
        number = self[key] = self.texts.number(_text_of(key, self.texts.tally))
        return number


def _text_of(key: Any, tally: Tally) -> str:
    """Return the text of a str, of raw JSON (unescaped if it is a string, else compact), or of another scalar."""
    if isinstance(key, str):
        return key
    if not isinstance(key, bytes):
        return NO_NAME if key is None else str(key)
    try:
        value = msgspec.json.decode(key)
    except NOT_JSON:
        text = key.decode("utf-8", "replace")
        if "\ufffd" in text:
            tally.add("not-utf8")
        return text[1:-1] if text.startswith('"') and text.endswith('"') else text
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


class Tracks(dict[tuple[Any, Any], int]):
    """Ids of (pid, tid) lanes; a number written as text is the number (2021 wrote both for one thread)."""

    def __init__(self) -> None:
        self.lanes: list[tuple[int | str, int | str]] = []
        self._ids: dict[tuple[int | str, int | str], int] = {}
        super().__init__()

    def __missing__(self, key: tuple[Any, Any]) -> int:
        lane = (plain(key[0]), plain(key[1]))
        number = self._ids.setdefault(lane, len(self._ids))
        if number == len(self.lanes):
            self.lanes.append(lane)
        self[key] = number
        return number


def plain(value: Any) -> int | str:
    """Return a pid or tid as an integer where it is one, however it is written, else as a text."""
    if isinstance(value, str):
        return int(value) if value.isdecimal() and value.isascii() and len(value) < 20 else value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else str(value)


class Collectives(dict[bytes, int]):
    """Ids of descriptions of collectives, by their stable JSON."""

    def __missing__(self, key: bytes) -> int:
        number = self[key] = len(self)
        return number

    def number(self, args: dict[str, Any]) -> int:
        """Return the id of the description `args`."""
        return self[msgspec.json.encode(args, order="sorted")]

    def values_in_order(self) -> list[dict[str, Any]]:
        """Return the descriptions in the order of their ids."""
        return [msgspec.json.decode(key) for key in self]
