"""Where members of a JSON list or object begin and end, by brackets and quotation marks alone.

Right for sound JSON, and for JSON whose only damage lies inside texts or numbers; slower than a decoder, so it is
asked only where the layout of the file does not tell.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import msgspec

# What msgspec raises for text that is not JSON, or not of the wanted form. Bytes that are not UTF-8 had an error of
# their own until 0.19; what is nested a thousand deep is nothing that a profiler wrote.
NOT_JSON: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

_elements: Final = msgspec.json.Decoder(list[msgspec.Raw])

_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}",]', re.DOTALL)
_EVENT_END: Final = re.compile(rb"(\n[ \t]*)?\}\s*,\s*\{", re.DOTALL)


class Members(NamedTuple):
    """What stands at the outermost level of a text that begins inside a list or an object."""

    commas: list[int]  # positions of the commas between members
    closed: int | None  # position of the bracket that closes the list or object
    open: bool  # whether the text ends inside a member
    stray: bool  # whether a quotation mark has no partner: nothing after the last comma can be relied on then


def members(text: bytes, start: int = 0, most: int | None = None) -> Members:
    """Return the members of the list or object that `text` is the inside of, from `start`, at most `most`."""
    commas: list[int] = []
    depth = 0
    for match in _TOKEN.finditer(text, start):
        byte = text[match.start()]
        if byte in b"[{":
            depth += 1
        elif byte in b"]}":
            depth -= 1
            if depth < 0:
                return Members(commas, match.start(), False, False)
        elif byte == ord(","):
            if depth == 0:
                commas.append(match.start())
                if len(commas) == most:
                    break
        elif match.end() - match.start() == 1:
            return Members(commas, None, True, True)
    return Members(commas, None, depth > 0, False)


def separator(text: bytes) -> bytes | None:
    """Return what separates the first two events of a list, from one brace to the other, with the line break before."""
    commas = members(text, most=1).commas
    match = commas and _EVENT_END.search(text, max(commas[0] - 200, 0))
    while match and not match.start() < commas[0] < match.end():
        match = _EVENT_END.search(text, match.start() + 1)
    return match.group() if match else None


def sound_so_far(text: bytes) -> bool:
    """Return whether `text`, the inside of a list, is sound JSON that goes on, or that the end of the list follows."""
    try:
        _elements.decode(b"[" + text)
    except NOT_JSON as error:
        return "truncated" in str(error) or "trailing characters" in str(error)
    return True


def is_object(text: bytes) -> bool:
    """Return whether `text` is a JSON object."""
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except NOT_JSON:
        return False
