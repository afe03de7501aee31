"""A real trace, many times over: long runs as people record them, with the habits of the profiler that wrote them.

Each copy follows the one before: its times lie later, and its ids (correlation, External id, flow, Python id, ...)
and numbers of steps go on where those of the copy before ended. Everything else stands as it is in the file.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from tracelock.trace.columns import Int64

_PAUSE_US: Final = 1000
_TIME: Final = b"ts"
# What grows from copy to copy; of a fractional time only the whole microseconds are written anew.
_NUMBER: Final = re.compile(
    rb'("(?:ts|correlation|[Ee]xternal id|Sequence number|id|Python id|Python parent id)": ?|ProfilerStep#)(\d+)'
)
_ALIKE: Final = {b"external id": b"External id", b"Python parent id": b"Python id"}


def enlarge(source: Path, target: Path, megabytes: float) -> None:
    """Write `source` to `target` (uncompressed) as often as it takes to fill `megabytes` (10**6 bytes)."""
    with gzip.open(source) if source.suffix == ".gz" else source.open("rb") as stream:
        text = stream.read()
    events = bytes(msgspec.json.decode(text, type=dict[str, msgspec.Raw])["traceEvents"]).rstrip(b"] \n")
    head, _, tail = text.partition(events)
    pieces = _NUMBER.split(events.lstrip(b"["))  # text, key, number, text, key, number, ..., text
    fixed = [before + key for before, key in zip(pieces[:-1:3], pieces[1::3], strict=True)]
    numbers = np.array([int(number) for number in pieces[2::3]], dtype=np.int64)
    shifts = _shifts(pieces[1::3], numbers)
    with target.open("wb") as out:
        out.write(head + b"[")
        copy = 0
        while not copy or out.tell() < megabytes * 1e6:
            written = [b"%d" % number for number in (numbers + copy * shifts).tolist()]
            out.write(b"," * bool(copy))
            out.write(b"".join(part for pair in zip(fixed, written, strict=True) for part in pair))
            out.write(pieces[-1])
            copy += 1
        out.write(tail)


def _shifts(keys: Sequence[bytes], numbers: Int64) -> Int64:
    """Return by how much each number grows from copy to copy: by the span of all numbers of its key, and no less."""
    names = [_name(key) for key in keys]
    shifts = np.zeros(len(numbers), np.int64)
    for name in set(names):
        these = np.array([each == name for each in names], np.bool_)
        values = numbers[these]
        if name == _TIME:
            near = values[np.abs(values - np.median(values)) < 3.6e9]  # without marks that lie years away
            shifts[these] = int(near.max() - near.min()) + _PAUSE_US
        else:
            shifts[these] = np.where(values > 0, int(values.max()) + 1, 0)  # 0 says that there is none
    return shifts


def _name(key: bytes) -> bytes:
    name = key.strip(b'": #')
    return _ALIKE.get(name, name)
