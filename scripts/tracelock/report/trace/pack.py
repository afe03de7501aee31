"""Columns as bytes for a page: variable-length integers, compressed, as letters. `assets/unpack.js` reads them."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.signedinteger[Any]]


def varints(values: Numbers) -> bytes:
    """Return integers of either sign as LEB128 of their zigzag code: seven bits a byte, low ones first."""
    wide = values.astype(np.int64)
    code = ((wide << 1) ^ (wide >> 63)).astype(np.uint64)
    lengths = np.ones(len(code), np.int64)
    for bits in range(7, 64, 7):
        lengths += code >= np.uint64(1 << bits)
    ends = np.cumsum(lengths)
    out = np.zeros(int(ends[-1]) if len(ends) else 0, np.uint8)
    for place in range(int(lengths.max(initial=0))):
        here = lengths > place
        more = (lengths[here] > place + 1).astype(np.uint8) << 7
        byte = (code[here] >> np.uint64(7 * place)).astype(np.uint8) & np.uint8(0x7F)
        out[ends[here] - lengths[here] + place] = byte | more
    return out.tobytes()


def columns(parts: Sequence[Numbers]) -> tuple[bytes, list[int]]:
    """Return columns one behind another as varints, and the number of values of each."""
    return b"".join(map(varints, parts)), [len(part) for part in parts]


def letters(data: bytes) -> str:
    """Return bytes compressed (zlib) and as base64, which needs no escaping in a page."""
    return base64.b64encode(zlib.compress(data, 9)).decode("ascii")


def document(value: Any) -> str:
    """Return a JSON document compressed and as base64; NUL and unpaired surrogates survive as escapes."""
    return letters(json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii"))
