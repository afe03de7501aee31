"""Events from text that the decoder refused: odd but sound JSON, a wrong cut, the end of the list, or damage.

Repair is confined to the events that need it; every event that is left out is counted.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw

from tracelock.trace.columnise import Batch
from tracelock.trace.decode import Decoder
from tracelock.trace.events import PHASES, Args, Event, event_decoder
from tracelock.trace.kinds import KINETO_KEYS
from tracelock.trace.mend import BeyondMendingError, mend, mend_quotes
from tracelock.trace.scan import NOT_JSON, is_object, members, sound_so_far

_BETWEEN: Final = re.compile(rb"(?<=\})\s*,?\s*(?=\{)")
_AFTER_LIST: Final = re.compile(rb"\s*(?:,\s*\"|\}(?!\s*[,}\]])|\Z)")
_KINETO_KEY: Final = re.compile(f'"(?:{"|".join(sorted(KINETO_KEYS))})"'.encode())
_MOST_CUTS: Final = 3  # in one damaged event
_RUN: Final = 64  # events that are tried at once
_LOOK_AHEAD: Final = 64  # bytes behind an open event that tell whether it goes on, or lacks a bracket

_events: Final = event_decoder(None)
_elements: Final = msgspec.json.Decoder(list[Raw])
_members: Final = msgspec.json.Decoder(dict[str, Raw])
_SCALARS: Final = frozenset(field.encode_name for field in msgspec.structs.fields(Args) if field.type is not Raw)
_PHASES: Final = frozenset(f'"{phase}"'.encode() for phase in PHASES)


class Salvaged(NamedTuple):
    """What was made of a text."""

    used: int  # bytes dealt with; 0 if the first event needs more text
    closed: bool  # whether the list of events ended there
    batches: list[Batch]


class Salvager:
    """Hands to a decoder what can be read of a text, in the form that it takes."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        self.tally = decoder.context.tally
        self.lost_end = False  # whether an event was open where the text ended

    def salvage(self, text: bytes, at_end: bool = False, patient: bool = True, between: bool = False) -> Salvaged:
        """Decode the events at the start of `text`, which begins at an event.

        Parameters
        ----------
        text
            Some events, perhaps cut in the middle of the last one, perhaps with the end of the list and more.
        at_end
            Whether no more text follows: then an open event is lost, and not to be continued.
        patient
            Whether more text may be asked for where the first event is still open.
        between
            Whether `text` ends where the layout of the file separates events: a text that is open there is damaged.
        """
        # A text that was cut anywhere may end in half a number, which is sound, too.
        array = self._normal(text) if between or at_end else None
        if array is not None:
            return Salvaged(len(text), False, self._decode(array))
        if sound_so_far(text):
            found = members(text)
            last = found.closed if found.closed is not None else found.commas[-1] if found.commas else None
            array = None if last is None else self._normal(text[:last])
            if last is not None and array is not None:
                return Salvaged(last + 1, found.closed is not None, self._decode(array))
            if patient and not at_end:
                return Salvaged(0, False, [])
        return self._piecewise(text, at_end, patient, between)

    def _decode(self, array: bytes) -> list[Batch]:
        """Decode events of the usual form, of which some may have a key twice: then the last one counts."""
        try:
            return self.decoder.decode(array)
        except NOT_JSON:
            single = list(filter(None, map(self._without_repeats, _elements.decode(array))))
            return self.decoder.decode(b"[" + b",".join(single) + b"]")

    def _without_repeats(self, element: Raw) -> bytes | None:
        """Return an event with each key once, or None (counted) if its keys cannot be told apart."""
        for form in (_as_it_is, _mended_numbers):
            try:
                return msgspec.json.encode(_members.decode(form(bytes(element))[0]))
            except (*NOT_JSON, BeyondMendingError):
                continue
        self.tally.add("unreadable-event")
        return None

    def _normal(self, text: bytes) -> bytes | None:
        """Return the JSON array of the events in `text` in the usual form, or None if it is no JSON."""
        array = b"[" + text + b"]"
        try:
            self._learn(_events.decode(array))
            return array
        except msgspec.ValidationError:
            pass
        except NOT_JSON:
            return None
        try:
            elements = _elements.decode(array)
        except NOT_JSON:
            return None
        return b"[" + b",".join(filter(None, map(self._usual, elements))) + b"]"

    def _learn(self, events: Iterable[Event]) -> None:
        for category in {event.cat for event in events}:
            self.decoder.learn(category)

    def _usual(self, element: Raw) -> bytes | None:
        """Return one member of traceEvents as an event of the usual form, or None (counted) if it is none."""
        for form in (_as_it_is, _without_oddities, _mended_numbers):
            try:
                raw, counts = form(bytes(element))
                self._learn(_events.decode(b"[" + raw + b"]"))
            except (*NOT_JSON, BeyondMendingError):
                continue
            self.tally.merge(counts)
            return raw
        self.tally.add("not-an-event")
        return None

    def _mended(self, text: bytes, quotes: bool = False) -> bytes | None:
        """Return the JSON array of the events in `text` after mending, or None if that does not help."""
        marks = 0
        if quotes:
            text, marks = mend_quotes(text)
        try:
            array, counts = mend(b"[" + text + b"]")
        except BeyondMendingError:
            return None
        array_or_none = self._normal(array[1:-1])
        if array_or_none is not None:
            self.tally.merge(counts)
            self.tally.add("bare-quote", marks)
        return array_or_none

    def _one(self, text: bytes) -> bytes | None:
        """Return the JSON array of what `text` holds, mended where needed, or None."""
        return self._normal(text) or self._mended(text) or self._mended(text, quotes=True)

    def _piecewise(self, text: bytes, at_end: bool, patient: bool, between: bool) -> Salvaged:
        """Read runs of sound events, and the others one by one, cutting where one object follows another."""
        gaps = [(match.end(), b"," in match.group()) for match in _BETWEEN.finditer(text)]
        cuts, commas = [0, *(end for end, _ in gaps), len(text)], [comma for _, comma in gaps]
        arrays: list[bytes] = []
        place, used, closed, run = 0, 0, False, _RUN
        while place + 1 < len(cuts) and not closed:
            start, stop = cuts[place], cuts[min(place + run, len(cuts) - 1)]
            array = self._normal(_trimmed(text[start:stop]))
            if array is None and run > 1:
                run //= 4
                continue
            if array is None:
                array, stop, closed = self._single(text, start, stop, at_end)
                run = _RUN
            lost = array is None and not closed
            if lost and not at_end and (used or patient) and _goes_on(text, start, stop, between):
                break
            if array is not None:
                arrays.append(array[1:-1])
            elif lost and at_end and stop == len(text):
                self.lost_end = True
            else:
                self.tally.add("unreadable-event")
            used, place = stop, bisect.bisect_left(cuts, stop)
            at_gap = 0 < place <= len(commas) and cuts[place] == stop
            self.tally.add("bad-punctuation", at_gap and not commas[place - 1])
        joined = b"[" + b",".join(filter(None, arrays)) + b"]"
        return Salvaged(used, closed, self._decode(joined) if arrays else [])

    def _single(self, text: bytes, start: int, stop: int, at_end: bool) -> tuple[bytes | None, int, bool]:
        """Return the array of the event at `start`, where it ends, and whether it is the last of the list."""
        piece = _trimmed(text[start:stop])
        array = self._mended(piece) or self._mended(piece, quotes=True)
        if array is not None:
            return array, stop, False
        if sound_so_far(text[start : stop + _LOOK_AHEAD]):  # what separates events lay inside of it
            found = members(text, start, most=1)
            end = found.commas[0] if found.commas else found.closed
            array = None if end is None else self._normal(_trimmed(text[start:end]))
            if end is not None and array is not None:
                return array, end + 1, not found.commas
        array, end, closed = self._end_of_list(text, start, stop, at_end)
        if array is None and not closed:
            array, end = self._mended_over_cuts(text, start, stop)
        return array, end, closed

    def _mended_over_cuts(self, text: bytes, start: int, stop: int) -> tuple[bytes | None, int]:
        """Return the array of an event that is damaged, and was cut at a list of objects in it; and where it ends."""
        ends = [gap.start() for gap in itertools.islice(_BETWEEN.finditer(text, stop), _MOST_CUTS)]
        for end in ends if len(ends) == _MOST_CUTS else [*ends, len(text)]:
            array = self._mended(_trimmed(text[start:end]))
            if array is not None:
                return array, end
        return None, stop

    def _end_of_list(self, text: bytes, start: int, stop: int, at_end: bool) -> tuple[bytes | None, int, bool]:
        """Return the event before a bracket that closes the list, if there is one between `start` and `stop`.

        The event is None if it cannot be read, though the bracket closes the list, as what follows completes the file.
        """
        ends = [start + match.end() for match in re.finditer(rb"\]", text[start:stop])]
        ends = [end for end in ends if _AFTER_LIST.match(text, end)]
        for end in ends:
            before = self.tally.counts()
            array = self._one(_trimmed(text[start : end - 1]))
            if array is None or array == b"[]":  # the bracket closes a list in args
                self.tally.reset(before)
            else:
                self.tally.add("bad-punctuation", text[start : end - 1].rstrip().endswith(b","))
                return array, end, True
        for end in ends if at_end else []:
            if _KINETO_KEY.search(text, end) and is_object(b'{"":[]' + text[end:]):
                return None, end, True
        return None, stop, False


def _as_it_is(element: bytes) -> tuple[bytes, dict[str, int]]:
    return element, {}


def _without_oddities(element: bytes) -> tuple[bytes, dict[str, int]]:
    """Return an event without the keys whose values are of a type that they never have."""
    keys = _members.decode(element)
    if bytes(keys.get("ph", b"")) not in _PHASES:
        raise msgspec.ValidationError
    if not bytes(keys.get("cat", b'""')).startswith(b'"'):
        del keys["cat"]
    args = keys.pop("args", None)
    keys = {key: value for key, value in keys.items() if bytes(value)[:1] not in (b"[", b"{")}
    if args is not None and bytes(args).startswith(b"{"):
        kept = _members.decode(args).items()
        usual = {key: value for key, value in kept if key not in _SCALARS or bytes(value)[:1] not in (b"[", b"{")}
        odd = len(usual) < len(kept)
        keys["args"] = Raw(msgspec.json.encode(usual))
    else:
        odd = args is not None
    return msgspec.json.encode(keys), {"odd-args": 1} if odd else {}


def _mended_numbers(element: bytes) -> tuple[bytes, dict[str, int]]:
    """Return sound JSON without numbers that no machine type holds."""
    return mend(element)


def _goes_on(text: bytes, start: int, stop: int, between: bool) -> bool:
    """Return whether the event at `start` may be readable once more text is there."""
    return (stop == len(text) and not between) or sound_so_far(text[start:])


def _trimmed(text: bytes) -> bytes:
    return text.strip(b" \t\r\n,")
