"""Pickles of plain data, such as PyTorch's memory snapshots, read without ever running what is in them.

This reader knows only how to make dicts, lists, tuples, strings, bytes, numbers, booleans and None: the instructions
that name, call or build anything else do not exist for it. ``pickle.load`` would run them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tracelock.errors import Problem, TracelockError

_FOREIGN: Final = {
    **{b"c": "GLOBAL", b"\x93": "STACK_GLOBAL", b"R": "REDUCE", b"b": "BUILD", b"i": "INST", b"o": "OBJ"},
    **{b"\x81": "NEWOBJ", b"\x92": "NEWOBJ_EX", b"\x82": "EXT1", b"\x83": "EXT2", b"\x84": "EXT4"},
    **{b"P": "PERSID", b"Q": "BINPERSID", b"\x97": "NEXT_BUFFER", b"\x98": "READONLY_BUFFER"},
}
_CONSTANTS: Final[dict[bytes, Any]] = {b"N": None, b"\x88": True, b"\x89": False}
_NUMBERS: Final = {b"J": "<i", b"K": "<B", b"M": "<H", b"G": ">d"}
_TEXTS: Final = {b"\x8c": "<B", b"X": "<I", b"\x8d": "<Q"}
_BYTES: Final = {b"C": "<B", b"B": "<I", b"\x8e": "<Q"}
_LONGS: Final = {b"\x8a": "<B", b"\x8b": "<i"}
_BINGET, _LONG_BINGET, _MEMOIZE, _BININT1, _BININT2 = b"hj\x94KM"
_BEGIN, _SETITEMS, _EMPTY_DICT = b"(u}"
_LONGEST: Final = 64  # bytes of a whole number


class _RefusedError(Exception):
    """What is wrong with the pickle."""


def read_plain_pickle(path: Path) -> Any:
    """Return the plain data that the pickle in `path` holds (protocol 2 and later; bytes from 3 on).

    Raises
    ------
    TracelockError
        If the file cannot be read, is damaged, or holds anything but plain data.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TracelockError(Problem(str(path), f"cannot be read: {error.strerror}")) from None
    try:
        return _Reader(data).read()
    except _RefusedError as error:
        hint = "expected what torch.cuda.memory._dump_snapshot writes; nothing in the file was run"
        raise TracelockError(Problem(str(path), str(error), hint)) from None
    except (IndexError, KeyError, ValueError, TypeError, AttributeError, struct.error, RecursionError):
        raise TracelockError(Problem(str(path), "is a damaged pickle, or ends early")) from None


class _Reader:
    """A machine with a stack and a memo, and with instructions for plain data alone."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}
        self._run: dict[bytes, Callable[[], None]] = self._instructions()

    def _instructions(self) -> dict[bytes, Callable[[], None]]:
        stack, push = self._stack, self._stack.append
        made: dict[bytes, Callable[[], None]] = {
            b"(": lambda: self._marks.append(len(stack)),
            b"}": lambda: push({}),
            b"]": lambda: push([]),
            b")": lambda: push(()),
            b"d": lambda: push(self._pairs({}, self._marked())),
            b"l": lambda: push(self._marked()),
            b"t": lambda: push(tuple(self._marked())),
            b"\x85": lambda: self._tuple(1),
            b"\x86": lambda: self._tuple(2),
            b"\x87": lambda: self._tuple(3),
            b"a": lambda: self._list([stack.pop()]),
            b"e": lambda: self._list(self._marked()),
            b"s": lambda: self._dict([stack.pop(-2), stack.pop()]),
            b"u": lambda: self._dict(self._marked()),
            b"0": lambda: self._drop(),
            b"\x94": lambda: self._memo.__setitem__(len(self._memo), stack[-1]),
            b"q": lambda: self._memo.__setitem__(self._number("<B"), stack[-1]),
            b"r": lambda: self._memo.__setitem__(self._number("<I"), stack[-1]),
            b"h": lambda: push(self._memo[self._number("<B")]),
            b"j": lambda: push(self._memo[self._number("<I")]),
            b"\x80": lambda: self._skip(1),
            b"\x95": lambda: self._skip(8),
        }
        made |= {code: lambda value=value: push(value) for code, value in _CONSTANTS.items()}  # type: ignore[misc]
        made |= {code: lambda form=form: push(self._number(form)) for code, form in _NUMBERS.items()}  # type: ignore[misc]
        made |= {code: lambda form=form: push(self._text(form)) for code, form in _TEXTS.items()}  # type: ignore[misc]
        made |= {code: lambda form=form: push(self._take(self._number(form))) for code, form in _BYTES.items()}  # type: ignore[misc]
        made |= {code: lambda form=form: push(self._long(form)) for code, form in _LONGS.items()}  # type: ignore[misc]
        return made

    def read(self) -> Any:
        """Run to the end; return what is on the stack then."""
        if self._data[:1] != b"\x80":
            raise _RefusedError("is no pickle of protocol 2 or later")
        while True:
            code = self._quick()
            if code in self._run:
                self._run[code]()
            elif code == b".":
                (value,) = self._stack
                return value
            elif code in _FOREIGN:
                raise _RefusedError(
                    f"is a pickle that holds more than plain data: {_FOREIGN[code]} at byte {self._at - 1}"
                )
            else:
                raise _RefusedError("is a damaged pickle, or ends early")

    def _quick(self) -> bytes:
        """Run the instructions that make up most of a snapshot; return the first other one."""
        data, at, stack, memo, marks = self._data, self._at, self._stack, self._memo, self._marks
        push = stack.append
        while True:
            code = data[at]
            at += 1
            if code == _BINGET:
                push(memo[data[at]])
                at += 1
            elif code == _LONG_BINGET:
                push(memo[int.from_bytes(data[at : at + 4], "little")])
                at += 4
            elif code == _MEMOIZE:
                memo[len(memo)] = stack[-1]
            elif code == _BININT1:
                push(data[at])
                at += 1
            elif code == _BININT2:
                push(data[at] | data[at + 1] << 8)
                at += 2
            elif code == _BEGIN:
                marks.append(len(stack))
            elif code == _SETITEMS:
                self._dict(self._marked())
            elif code == _EMPTY_DICT:
                push({})
            else:
                self._at = at
                return data[at - 1 : at]

    def _take(self, count: int) -> bytes:
        part = self._data[self._at : self._at + count]
        if count < 0 or len(part) < count:
            raise _RefusedError("is a damaged pickle, or ends early")
        self._at += count
        return part

    def _skip(self, count: int) -> None:
        self._take(count)

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _text(self, form: str) -> str:
        return self._take(self._number(form)).decode("utf-8", "replace")

    def _long(self, form: str) -> int:
        count = self._number(form)
        if count > _LONGEST:
            raise _RefusedError(f"holds a number of {count} bytes")
        return int.from_bytes(self._take(count), "little", signed=True)

    def _marked(self) -> list[Any]:
        mark = self._marks.pop()
        values = self._stack[mark:]
        del self._stack[mark:]
        return values

    def _drop(self) -> None:
        self._stack.pop()

    def _tuple(self, count: int) -> None:
        values = tuple(self._stack[-count:])
        if len(values) != count:
            raise IndexError
        self._stack[-count:] = [values]

    def _list(self, values: list[Any]) -> None:
        if type(self._stack[-1]) is not list:
            raise TypeError
        self._stack[-1].extend(values)

    def _dict(self, values: list[Any]) -> None:
        self._pairs(self._stack[-1], values)

    @staticmethod
    def _pairs(target: Any, values: list[Any]) -> Any:
        if type(target) is not dict or len(values) % 2:
            raise TypeError
        target.update(zip(values[::2], values[1::2], strict=True))
        return target
