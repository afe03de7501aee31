"""Columns of a trace as a file, and back: a zip archive of .npy columns (what ``numpy.savez`` writes) and one of JSON.

The archive is not compressed, and each column begins where an array may: it is mapped, not copied. Its check sums are
held against what is there before anything is used, and nothing in it is ever run (no pickle): a file that is damaged,
of another version or not ours is no answer, and never a wrong one.
"""

from __future__ import annotations

import io
import mmap
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from tracelock.trace.columns import DeviceRows, FlowRows, HostRows, MemoryRows, Trace, TraceFacts, Track
from tracelock.trace.kinds import Table
from tracelock.trace.store import DTYPES, ROWS, Array

VERSION: Final = 1
_ALIGN: Final = 64  # bytes: what numpy aligns the data of a .npy file to
_LOCAL: Final = 30  # bytes of a member's header before its name
_ZIP64: Final = 20  # bytes of the extra field that zipfile puts first
_PADDING: Final = 0xD935  # id of the extra field that fills up to the next multiple
_TABLES: Final = {"host": Table.HOST, "device": Table.DEVICE, "memory": Table.INSTANT, "flows": Table.FLOW}
_PAGE: Final = "trace.json"
_CHECK: Final = 16 << 20  # bytes that are checked, and let go of, at a time


class _Page(msgspec.Struct):
    """All of a trace but its columns."""

    version: int
    key: str
    facts: TraceFacts
    texts: list[str]
    tracks: list[Track]
    collectives: list[dict[str, Any]]
    rows: dict[str, int]  # by table


class _NotOursError(Exception):
    """The file is not what `write` wrote."""


def write(trace: Trace, path: Path, key: str) -> None:
    """Write the columns of `trace` to `path`; `key` must be named to read them back."""
    tables = {name: getattr(trace, name) for name in _TABLES}
    page = _Page(
        VERSION,
        key,
        trace.facts,
        list(trace.texts),
        list(trace.tracks),
        [dict(each) for each in trace.collectives],
        {name: len(rows) for name, rows in tables.items()},
    )
    with path.open("wb") as stream, zipfile.ZipFile(stream, "w", allowZip64=True) as archive:
        with archive.open(zipfile.ZipInfo(_PAGE), "w", force_zip64=True) as member:
            member.write(msgspec.json.encode(page))
        for table, rows in tables.items():
            for name in rows.__annotations__:
                _add(archive, f"{table}.{name}.npy", getattr(rows, name), stream.tell())


def _add(archive: zipfile.ZipFile, name: str, column: Array, place: int) -> None:
    """Add a column; one that no row has is kept as its one value."""
    short = column if not len(column) or column.strides != (0,) else column[0]
    info = zipfile.ZipInfo(name)
    free = -(place + _LOCAL + len(name) + _ZIP64 + 4) % _ALIGN
    info.extra = struct.pack("<HH", _PADDING, free) + bytes(free)
    with archive.open(info, "w", force_zip64=True) as member:
        head = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            head, {"descr": short.dtype.str, "fortran_order": False, "shape": short.shape}
        )
        member.write(head.getvalue())
        member.write(np.ascontiguousarray(short).reshape(-1).view(np.uint8).data)


def read(path: Path, key: str) -> Trace | None:
    """Return the trace whose columns are in `path`, None where they are not, or not those of `key`.

    The columns are mapped from the file and cannot be written to.
    """
    try:
        with path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
            pages = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
            members = {info.filename: _checked(pages, info) for info in archive.infolist()}
        page = msgspec.json.decode(pages[slice(*members[_PAGE])], type=_Page)
        if page.version != VERSION or page.key != key:
            return None
        host, device, memory, flows = (_table(pages, members, name, page.rows[name]) for name in _TABLES)
    except (OSError, ValueError, KeyError, struct.error, zipfile.BadZipFile, msgspec.MsgspecError, _NotOursError):
        return None
    trace = Trace(
        page.facts,
        page.texts,
        page.tracks,
        page.collectives,
        HostRows(**host),
        DeviceRows(**device),
        MemoryRows(**memory),
        FlowRows(**flows),
    )
    return trace if _ids_hold(trace) else None


def _checked(pages: mmap.mmap, info: zipfile.ZipInfo) -> tuple[int, int]:
    """Return where the data of a member begins and ends, if its check sum is right."""
    head = pages[info.header_offset : info.header_offset + _LOCAL]
    name, extra = struct.unpack("<HH", head[26:30])
    first = info.header_offset + _LOCAL + name + extra
    last = first + info.file_size
    if info.compress_type != zipfile.ZIP_STORED or last > len(pages):
        raise _NotOursError
    checked = 0
    with memoryview(pages) as view:
        for place in range(first, last, _CHECK):
            checked = zlib.crc32(view[place : min(place + _CHECK, last)], checked)
    if hasattr(pages, "madvise"):
        pages.madvise(mmap.MADV_DONTNEED)
    if checked != info.CRC:
        raise _NotOursError
    return first, last


def _table(pages: mmap.mmap, members: Mapping[str, tuple[int, int]], table: str, rows: int) -> dict[str, Array]:
    kind = _TABLES[table]
    return {
        name: _column(pages, members[f"{table}.{name}.npy"], DTYPES[kind][name], rows) for name in _names(ROWS[kind])
    }


def _names(rows: type) -> list[str]:
    return list(rows.__annotations__)


class _Header(NamedTuple):
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def _column(pages: mmap.mmap, member: tuple[int, int], dtype: np.dtype[Any], rows: int) -> npt.NDArray[Any]:
    first, last = member
    start = io.BytesIO(pages[first : min(first + 1024, last)])
    if np.lib.format.read_magic(start) != (1, 0):
        raise _NotOursError
    header = _Header(*np.lib.format.read_array_header_1_0(start)[::2])
    place = first + start.tell()
    single = header.shape == ()
    count = 1 if single else rows
    if header.dtype != dtype or not (single or header.shape == (rows,)) or last - place != count * dtype.itemsize:
        raise _NotOursError
    if not count:
        return np.empty(0, dtype)
    column = np.frombuffer(pages, dtype=dtype, count=count, offset=place)
    return np.broadcast_to(column[0], rows) if single else column


def _ids_hold(trace: Trace) -> bool:
    """Return whether every id in a column is one of a dictionary."""
    texts, tracks = len(trace.texts), len(trace.tracks)
    limits: list[tuple[Array, int]] = [
        *((getattr(trace.host, name), texts) for name in ("name", "shapes", "types", "stack")),
        (trace.device.name, texts),
        (trace.device.collective, len(trace.collectives)),
        *((rows.track, tracks) for rows in (trace.host, trace.device, trace.memory, trace.flows)),
    ]
    return all(not len(ids) or (int(ids.min()) >= -1 and int(ids.max()) < limit) for ids, limit in limits)
