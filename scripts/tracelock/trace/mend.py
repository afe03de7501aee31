"""Mending of JSON that no strict decoder takes: what killed writers, hand editing and old profilers leave behind.

`mend` works on text as it stands and counts what it changes; whether the result is JSON then, the decoder says.
`mend_quotes` comes before it where quotation marks inside texts are not escaped.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

_STRING: Final = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_TOKEN: Final = re.compile(
    rb"(?P<string>" + _STRING + rb")"
    rb"|(?P<word>[^\s\"\[\]{},:]+)"
    rb"|(?P<stray>\")"
    rb"|(?P<comma>,)(?=\s*[,\]}])"
    rb"|(?P<close>[}\]])(?=\s*[{\[\"])",
    re.DOTALL,
)
_ODD_STRING: Final = re.compile(rb"[\x00-\x1f\x80-\xff]|\\")
_NUMBER: Final = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WORDS: Final = {b"true": b"true", b"false": b"false", b"null": b"null"} | {
    b"True": b"true",
    b"False": b"false",
    b"None": b"null",
}
_ODD_NUMBER: Final = re.compile(
    rb"[-+]?(?:s?nan|inf(?:inity)?|n/?a|undefined|none|nil|1\.#(?:inf|ind|qnan)0*)(?:\([a-z0-9]*\))?|[-+]?\.?[0-9][^\s]*|-",
    re.IGNORECASE,
)
_CONTROL: Final = re.compile(r"[\x00-\x1f]")
_ESCAPE: Final = re.compile(r"\\(?:[\"\\/bfnrt]|u[0-9a-fA-F]{4}|.|\Z)", re.DOTALL)
_MOST_DIGITS: Final = 4000  # beyond that Python refuses to read an integer
_LARGEST_EXPONENT: Final = 308


class BeyondMendingError(ValueError):
    """Raised where text is damaged in a way that has no single sensible reading."""


def mend(text: bytes) -> tuple[bytes, Counter[str]]:
    """Return `text` with what JSON forbids replaced, and how often that was done, by code (see `tally.KINDS`).

    Raises
    ------
    BeyondMendingError
        If a quotation mark has no partner, or a bare word is no number that somebody wrote in their own way.
    """
    counts: Counter[str] = Counter()

    def replace(match: re.Match[bytes]) -> bytes:
        kind, token = match.lastgroup, match.group()
        if kind == "string":
            return _mend_string(token, counts) if _ODD_STRING.search(token) else token
        if kind == "word":
            return _mend_word(token, counts)
        if kind == "stray":
            raise BeyondMendingError
        counts["bad-punctuation"] += 1
        return b"" if kind == "comma" else token + b","

    return _TOKEN.sub(replace, text), counts


def _mend_word(word: bytes, counts: Counter[str]) -> bytes:
    """Return a bare word or number, or null in place of what is neither."""
    if _NUMBER.fullmatch(word):
        _, _, exponent = word.lower().partition(b"e")
        if len(word) <= _MOST_DIGITS and abs(int(exponent or 0)) <= _LARGEST_EXPONENT:
            return word
        counts["huge-number"] += 1
        return b"null"
    if word in _WORDS:
        counts["bad-number"] += word not in (b"true", b"false", b"null")
        return _WORDS[word]
    if not _ODD_NUMBER.fullmatch(word):
        raise BeyondMendingError
    counts["bad-number"] += 1
    return b"null"


def _mend_string(token: bytes, counts: Counter[str]) -> bytes:
    """Return a string without raw control characters, invalid escapes, lone surrogates or bytes that are not UTF-8."""
    try:
        text = token.decode("utf-8")
    except UnicodeDecodeError:
        counts["not-utf8"] += 1
        text = token.decode("utf-8", "replace")
    if _CONTROL.search(text):
        counts["control-character"] += 1
        text = _CONTROL.sub(lambda match: f"\\u{ord(match.group()):04x}", text)
    found = _ESCAPE.findall(text)
    if any(len(escape) < 3 and escape[1:] not in tuple('"\\/bfnrt') for escape in found):
        counts["bad-escape"] += 1
        text = _ESCAPE.sub(lambda match: match.group() if _is_escape(match.group()) else "\\" + match.group(), text)
    if any(escape[:3] in ("\\ud", "\\uD") for escape in found):
        text = _mend_surrogates(text, counts)
    return text.encode("utf-8")


def _is_escape(escape: str) -> bool:
    return len(escape) == 6 or escape[1:] in tuple('"\\/bfnrt')


_SURROGATES: Final = re.compile(
    r"(?P<pair>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    r"|(?P<other>\\.)",
    re.DOTALL,
)


def _mend_surrogates(text: str, counts: Counter[str]) -> str:
    lone = False

    def replace(match: re.Match[str]) -> str:
        nonlocal lone
        lone |= match.lastgroup == "lone"
        return "\\ufffd" if match.lastgroup == "lone" else match.group()

    text = _SURROGATES.sub(replace, text)
    counts["lone-surrogate"] += lone
    return text


_AFTER_KEY: Final = re.compile(rb"\s*:")
_AFTER_MEMBER: Final = re.compile(rb"\s*(?:\}|,\s*" + _STRING + rb"\s*:|\Z)", re.DOTALL)
_AFTER_ITEM: Final = re.compile(rb"\s*(?:\]|,)")
_AFTER_BACKSLASH: Final = re.compile(rb"\s*(?:,\s*" + _STRING + rb"\s*:|\}\s*(?:[,}\]]|\Z))", re.DOTALL)


def mend_quotes(text: bytes) -> tuple[bytes, int]:
    """Return one event with the quotation marks inside its texts escaped, and how many that were.

    A mark ends a text only if what follows could follow it there: a colon after a key; after the value of a
    member the end of the object or another key; after an item of a list a comma or the end of the list.
    """
    out: list[bytes] = []
    open_brackets: list[int] = []
    place = count = 0
    before = b""  # the last byte that is neither space nor inside a text
    while match := _NEXT.search(text, place):
        out.append(text[place : match.start()])
        place, byte = match.end(), match.group()
        in_object = open_brackets[-1:] == [b"{"[0]]
        if byte == b'"':
            after = _AFTER_ITEM if not in_object else _AFTER_MEMBER if before == b":" else _AFTER_KEY
            string, marks = _string_at(text, match.start(), after)
            out.append(string)
            place, count = match.start() + len(string) - marks, count + marks
        else:
            out.append(byte)
            if byte in b"[{":
                open_brackets.append(byte[0])
            elif byte in b"]}":
                del open_brackets[-1:]
        before = byte
    out.append(text[place:])
    return b"".join(out), count


_NEXT: Final = re.compile(rb'[\[\]{}:,"]')
_MARK: Final = re.compile(rb'\\.|"', re.DOTALL)


def _string_at(text: bytes, start: int, after: re.Pattern[bytes]) -> tuple[bytes, int]:
    r"""Return the string that begins at `start`, its inner marks escaped, and how many characters that added.

    A path may end in a backslash: ``"C:\", "pid": 1``.
    """
    pieces, place = [b'"'], start + 1
    for match in _MARK.finditer(text, start + 1):
        if match.group() == b'\\"' and after is _AFTER_MEMBER and _AFTER_BACKSLASH.match(text, match.end()):
            pieces.append(text[place : match.start()] + b"\\")
            return b'\\"'.join([b"".join(pieces[:2]), *pieces[2:]]) + b'\\"', len(pieces) - 1
        if match.group() != b'"':
            continue
        pieces.append(text[place : match.start()])
        place = match.end()
        if after.match(text, place):
            return b'\\"'.join([b"".join(pieces[:2]), *pieces[2:]]) + b'"', len(pieces) - 2
    return text[start:], 0
