"""Where the bytes of a trace come from: a plain file, gzip (several members too), or a zip archive of one member.

What a file is, its first bytes say, not its name. Decompression runs in a thread of its own, beside decoding.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import BinaryIO, Final, Protocol

from tracelock.errors import Problem, TracelockError, nearest

_inflate: ModuleType = zlib
with contextlib.suppress(ImportError):  # three times as fast
    from isal import isal_zlib as _inflate

_PIECE: Final = 128 << 10
_STEP: Final = 128 << 10  # of JSON at a time: what is lost where compressed data turns out to be corrupt
_AHEAD: Final = 16  # pieces decompressed and not yet decoded
_GZIP: Final = b"\x1f\x8b"
_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06")  # with and without members
_FOREIGN: Final = {
    b"\x28\xb5\x2f\xfd": "a zstd archive",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
    b"\x04\x22\x4d\x18": "an lz4 archive",
    b"7z\xbc\xaf": "a 7z archive",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
    b"\x80\x02": "a pickle",
    b"\x80\x04": "a pickle",
    b"SQLite format 3": "an SQLite database (of Nsight Systems?)",
    b"\x89PNG": "an image",
}
_CORRUPT: Final[tuple[type[Exception], ...]] = (
    zlib.error,
    _inflate.error,
    EOFError,
    OSError,
    zipfile.BadZipFile,
    NotImplementedError,
)
_HINTS: Final = {
    "archive": "unpack it first",
    "pickle": "of a memory snapshot? tracelock memory reads it",
    "UTF-16": "save it as UTF-8",
}


class Source(Protocol):
    """Bytes of JSON, one after another."""

    done: int  # bytes of the file read so far
    failed: bool  # True once compressed data ended early or was corrupt

    def readinto(self, view: memoryview) -> int:
        """Fill `view` from its start and return how many bytes that were; 0 at the end."""
        ...

    def close(self) -> None:
        """Give back what is open."""
        ...


class PlainSource:
    """The bytes of a file from `start` to `stop`, read straight into the caller's buffer."""

    def __init__(self, path: Path, start: int = 0, stop: int | None = None) -> None:
        self._file = path.open("rb", buffering=0)
        self._file.seek(start)
        self.stop = path.stat().st_size if stop is None else stop
        self.done = start
        self.failed = False

    def readinto(self, view: memoryview) -> int:
        """Fill `view`; see `Source`."""
        count = self._file.readinto(view[: max(self.stop - self.done, 0)])
        self.done += count
        return count

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class InflatingSource:
    """Decompressed bytes, made by a thread that stays a little ahead."""

    def __init__(self, pieces: Iterator[tuple[bytes, int]]) -> None:
        self.done = 0
        self.failed = False
        self._pieces = pieces
        self._queue: queue.Queue[tuple[bytes, int] | None] = queue.Queue(_AHEAD)
        self._left = memoryview(b"")
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._inflate, name="tracelock-inflate", daemon=True)
        self._thread.start()

    def _inflate(self) -> None:
        try:
            for piece in self._pieces:
                if self._closed.is_set():
                    return
                self._queue.put(piece)
        except _CORRUPT:
            self.failed = True
        finally:
            self._queue.put(None)

    def readinto(self, view: memoryview) -> int:
        """Fill `view`; see `Source`."""
        if not self._left and not self._next():
            return 0
        count = min(len(view), len(self._left))
        view[:count] = self._left[:count]
        self._left = self._left[count:]
        return count

    def _next(self) -> bool:
        piece = self._queue.get()
        if piece is None:
            self._queue.put(None)
            return False
        self._left, self.done = memoryview(piece[0]), piece[1]
        return bool(self._left) or self._next()

    def close(self) -> None:
        """Stop the thread, which may be waiting for room."""
        self._closed.set()
        while self._thread.is_alive():
            with contextlib.suppress(queue.Empty):
                self._queue.get_nowait()
            self._thread.join(0.001)


def gzip_pieces(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Yield decompressed pieces of all members, with the position in the file; raises where the data ends early."""
    with file:
        member = _inflate.decompressobj(31)
        started = False
        while compressed := file.read(_PIECE):
            while compressed:
                if not started and not compressed.startswith(_GZIP[: len(compressed)]):
                    return  # padding, or something else, after the last member
                started = True
                yield member.decompress(compressed, _STEP), file.tell()
                while member.unconsumed_tail and not member.eof:
                    yield member.decompress(member.unconsumed_tail, _STEP), file.tell()
                compressed = b""
                if member.eof:
                    compressed, member, started = member.unused_data, _inflate.decompressobj(31), False
        if started:
            raise EOFError


def zip_pieces(path: Path) -> Iterator[tuple[bytes, int]]:
    """Yield pieces of the one member of a zip archive, with the position in the archive."""
    with zipfile.ZipFile(path) as archive:
        (member,) = _members(archive)
        ratio = member.compress_size / max(member.file_size, 1)
        done = 0
        with archive.open(member) as stream:
            while piece := stream.read(_STEP):
                done += len(piece)
                yield piece, int(done * ratio)


def _members(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    hidden = ("__MACOSX/", ".")
    return [member for member in archive.infolist() if not member.is_dir() and not member.filename.startswith(hidden)]


def _check_zip(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            members = _members(archive)
    except zipfile.BadZipFile as error:
        raise TracelockError(Problem(str(path), f"is a damaged zip archive: {error}", "unpack what can be")) from None
    if len(members) != 1:
        names = ", ".join(member.filename for member in members[:5])
        raise TracelockError(
            Problem(
                str(path), f"is a zip archive of {len(members)} files ({names}), expected one trace", "unpack it first"
            )
        )
    if members[0].flag_bits & 1:
        raise TracelockError(Problem(str(path), "is an encrypted zip archive", "unpack it first"))


def is_plain(path: Path) -> bool:
    """Return whether the file is uncompressed, so that parts of it can be read apart."""
    with path.open("rb") as stream:
        start = stream.read(4)
    return not start.startswith((_GZIP, *_ZIP))


def not_fetched(address: str) -> Problem:
    """Return what is to be said of an address in the place of a file."""
    how = f"curl -LO '{address}'" if address.startswith("http") else "then name the file"
    return Problem(address, "is an address; addresses are not fetched", f"fetch it first: {how}")


def address_of(path: Path) -> str:
    """Return the web address that somebody has given in the place of a file, else an empty string.

    A path has lost the second slash of ``https://``.
    """
    scheme, colon, rest = str(path).partition(":/")
    known = colon and scheme.lower() in ("http", "https", "ftp", "s3", "gs", "hf", "file")
    return f"{scheme}://{rest}" if known else ""


def _unreadable(path: Path, error: OSError) -> Problem:
    """Return what is wrong with a path that cannot be opened, with the nearest name beside it."""
    if isinstance(error, IsADirectoryError):
        return Problem(str(path), "is a folder, expected a trace", "name the .json or .json.gz file in it")
    if isinstance(error, FileNotFoundError) and (address := address_of(path)):
        return not_fetched(address)
    if isinstance(error, FileNotFoundError):
        beside = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
        return Problem(str(path), "does not exist", nearest(path.name, beside))
    return Problem(str(path), f"cannot be read: {error.strerror or error}")


def open_source(path: Path) -> Source:
    """Open the trace at `path`.

    Raises
    ------
    TracelockError
        If the file cannot be read, is empty, or is something that no trace can be in.
    """
    try:
        with path.open("rb") as stream:
            start = stream.read(16)
    except OSError as error:
        raise TracelockError(_unreadable(path, error)) from None
    if not start:
        raise TracelockError(Problem(str(path), "is empty", "was the job killed before the trace was written?"))
    for magic, what in _FOREIGN.items():
        if start.startswith(magic):
            hint = next((text for word, text in _HINTS.items() if word in what), "give the .json or .json.gz file")
            raise TracelockError(Problem(str(path), f"is {what}, expected a trace as JSON", hint))
    if start.startswith(_GZIP):
        return InflatingSource(gzip_pieces(path.open("rb")))
    if start.startswith(_ZIP):
        _check_zip(path)
        return InflatingSource(zip_pieces(path))
    return PlainSource(path)
