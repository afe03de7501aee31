"""Microseconds as they stand in a trace, to int64 nanoseconds, exactly.

A float64 holds microseconds to the nanosecond only below 2**43 (8.796e12): larger fractional times, such as those
of the epoch, are taken from the digits of the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tracelock.trace.columns import Int64
from tracelock.trace.tally import Tally

EXACT_BELOW_US: Final = float(2**43)
LIMIT_US: Final = (2**63 - 1) // 1000
MISSING: Final = -(2**63)  # no time
LATEST: Final = 2**63 - 1  # stands for all later times, which are years away from any trace


class NeedDigitsError(Exception):
    """Raised when a float64 has lost digits of a time: decode the unit again and keep them."""


def nanoseconds(values: Sequence[Any], tally: Tally, digits_kept: bool = True) -> Int64:
    """Convert microseconds of any JSON type to nanoseconds, rounded to the nearest, ties to even.

    Parameters
    ----------
    values
        What the file holds: integers, floats, decimal texts; None where it holds nothing.
    tally
        Counts times written as texts.
    digits_kept
        False if floats may have lost digits in decoding; then such values raise.

    Returns
    -------
    int64 nanoseconds, `MISSING` where there is no finite number, `LATEST` where 64 bits do not hold it.

    Raises
    ------
    NeedDigitsError
        If a fractional time is too large for a float64 and `digits_kept` is False.
    """
    try:
        array = np.array(values)
    except ValueError:  # lists among them
        array = np.array(values, dtype=object)
    if array.dtype == np.int64:
        if np.abs(array).max(initial=0) < LIMIT_US:
            return array * 1000
    elif array.dtype == np.float64:
        if np.abs(array).max(initial=0.0) < EXACT_BELOW_US:
            whole = np.floor(array)
            nanos: Int64 = whole.astype(np.int64) * 1000
            nanos += np.rint((array - whole) * 1000.0).astype(np.int64)
            return nanos
        if not digits_kept and any(type(value) is float and abs(value) >= EXACT_BELOW_US for value in values):
            raise NeedDigitsError
    return np.array([_one(value, tally) for value in values], dtype=np.int64)


def nanoseconds_of_digits(values: Sequence[Any], tally: Tally) -> Int64:
    """Convert the raw JSON of microseconds (msgspec Raw, or bytes) to nanoseconds; see `nanoseconds`."""
    text = b",".join(values) + b","
    array = np.frombuffer(text, dtype=np.uint8)
    (points,) = np.nonzero(array == ord("."))
    (ends,) = np.nonzero(array == ord(","))
    if len(points) == len(ends) == len(values) and bool((ends - points == 4).all()):
        digits = text.replace(b".", b"")
        if digits.translate(None, b"0123456789") == b"," * len(values):
            result = np.fromstring(digits[:-1], dtype=np.int64, sep=",")
            if len(result) == len(values) and result.max(initial=0) < 2**63 - 1:  # C stops there, whatever follows
                return result
    return np.array([_one(_scalar(bytes(value)), tally) for value in values], dtype=np.int64)


def _scalar(raw: bytes) -> Any:
    """Return a Decimal of a raw number, the text within quotation marks, or None."""
    if raw.startswith(b'"'):
        return raw[1:-1].decode("utf-8", "replace")
    try:
        return Decimal(raw.decode("ascii", "replace"))
    except InvalidOperation:
        return None


def _one(value: Any, tally: Tally) -> int:
    if value is None or isinstance(value, bool):
        return MISSING
    try:
        exact = Decimal(repr(value) if isinstance(value, float) else value) * 1000
    except (InvalidOperation, ValueError, TypeError):
        return MISSING
    if not exact.is_finite():
        return MISSING
    if isinstance(value, str):
        tally.add("text-timestamp")
    return int(min(max(exact, Decimal(-LATEST)), Decimal(LATEST)).to_integral_value())


def integers(values: Sequence[Any], tally: Tally) -> Int64:
    """Convert ids of any JSON type to int64; -1 where there is no whole number below 2**63."""
    return np.array([_integer(value, tally) for value in values], dtype=np.int64)


def _integer(value: Any, tally: Tally) -> int:
    if value is None or isinstance(value, bool):
        return -1
    try:
        whole = int(value, 16 if value.startswith("0x") else 10) if isinstance(value, str) else int(value)
    except (ValueError, OverflowError):
        return -1
    if -(2**63) <= whole < 2**63:
        return whole
    tally.add("huge-number")
    return -1


def addresses(values: Sequence[Any]) -> npt.NDArray[np.uint64]:
    """Convert addresses to uint64; negative ones wrap, as C prints them; what is no number becomes 0."""
    array = np.array(values)
    if array.dtype.kind in "iu":
        return array.astype(np.uint64)
    return np.array([value % 2**64 if type(value) is int else 0 for value in values], dtype=np.uint64)


def floats(values: Sequence[Any]) -> npt.NDArray[np.float32]:
    """Convert numbers of any JSON type to float32; what is no number becomes NaN."""
    numbers = (value if isinstance(value, int | float) and not isinstance(value, bool) else np.nan for value in values)
    return np.fromiter(numbers, dtype=np.float32, count=len(values))
