"""What events say of collectives, of which no column but a dictionary holds all: looked up in the text of a unit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw

from tracelock.trace.events import NO_JSON, Event
from tracelock.trace.scan import NOT_JSON

# Keys of args that describe a collective: torch's ParamCommsUtils, and Kineto's copy of them on kernels.
_KEYS: Final = frozenset(
    """Collective name;dtype;In msg nelems;Out msg nelems;In split size;Out split size;Group size;Process Group Name;
Process Group Description;Process Group Ranks;Process Group ID;Process Group Hash;Rank;Global rank start;
Global rank stride;Src Rank;Dst Rank;Seq;Comms Id;Is asynchronized op;In tensors start;Out tensors start""".replace(
        "\n", ""
    ).split(";")
)
_NAME: Final = "Collective name"
_QUOTED: Final = b'"Collective name"'
_FLAT: Final = re.compile(rb'"args"\s*:\s*(\{[^{}]*\})')


class _RawArgs(msgspec.Struct, gc=False):
    args: Raw = NO_JSON


_raw_args: Final = msgspec.json.Decoder(list[_RawArgs])
_object: Final = msgspec.json.Decoder(dict[str, Any])


def descriptions(events: Sequence[Event], text: bytes | memoryview) -> dict[int, dict[str, Any]]:
    """Return what each event that names a collective says of it, by `id` of the event.

    Parameters
    ----------
    events
        What was decoded from the JSON array `text`, in its order.

    """
    naming = [event for event in events if _names(event)]
    found = _found(naming, bytes(text))
    if found is None:
        raw = _raw_args.decode(text)
        found = [_object.decode(raw[place].args) for place, event in enumerate(events) if _names(event)]
    pairs = zip(naming, found, strict=True)
    return {id(event): {key: value for key, value in args.items() if key in _KEYS} for event, args in pairs}


def _names(event: Event) -> bool:
    return event.args is not None and event.args.collective is not None


def _found(naming: Sequence[Event], text: bytes) -> list[dict[str, Any]] | None:
    """Return the args of the events that name a collective, sought by the key; None where that is not plain."""
    found: list[dict[str, Any]] = []
    place = text.find(_QUOTED)
    while place >= 0:
        match = _FLAT.match(text, text.rfind(b'"args"', 0, place))
        if match is None or match.end() <= place:
            return None
        try:
            args = _object.decode(match.group(1))
        except NOT_JSON:
            return None
        if args.get(_NAME) is not None:
            found.append(args)
        place = text.find(_QUOTED, match.end())
    same = [args[_NAME] for args in found] == [event.args.collective for event in naming if event.args is not None]
    return found if same else None
