"""Files in pieces of text, so that a trace of a gigabyte is scrubbed in little memory."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from tracelock.errors import Problem, TracelockError

PIECE = 8 << 20
_SEARCHED = 1 << 16
_TEXT = {".json", ".csv", ".txt", ".yml", ".yaml", ".svg", ".html", ".md", ".py", ".lock", ".smk", ".toml", ".cff", ""}
_TEXT |= {".patch", ".cfg", ".log"}


def is_text(path: Path) -> bool:
    """Return whether a file's content is looked at; others (PNG) hold no text of ours."""
    return path.suffix in _TEXT or is_packed(path)


def is_packed(path: Path) -> bool:
    """Return whether a file is gzip around text."""
    return path.suffix == ".gz"


def pieces(path: Path) -> Iterator[str]:
    """Yield the text of a file, cut where no name goes on: behind a line end, an object of JSON, or a quote.

    Bytes that are no UTF-8 come back unchanged from `encoded`.
    """
    rest = b""
    try:
        with _opened(path) as stream:
            while piece := stream.read(PIECE):
                piece = rest + piece
                cut = _cut(piece)
                rest = piece[cut:]
                if cut:
                    yield decoded(piece[:cut])
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TracelockError(
            Problem(str(path), f"is damaged: {error}", "leave traces out with --traces none")
        ) from None
    if rest:
        yield decoded(rest)


def rewrite(path: Path, target: Path, change: Callable[[str], str]) -> None:
    """Write `path` to `target` with each piece changed; gzip stays gzip, without name and time."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as plain:
        if not is_packed(path):
            for piece in pieces(path):
                plain.write(encoded(change(piece)))
            return
        with gzip.GzipFile(filename="", mode="wb", fileobj=plain, compresslevel=6, mtime=0) as packed:
            for piece in pieces(path):
                packed.write(encoded(change(piece)))


def decoded(data: bytes) -> str:
    """Return bytes as text; what is no UTF-8 is kept as it is."""
    return data.decode("utf-8", "surrogateescape")


def encoded(text: str) -> bytes:
    """Return the bytes that `decoded` made `text` from."""
    return text.encode("utf-8", "surrogateescape")


def _cut(piece: bytes) -> int:
    for mark in (b"\n", b"},", b'"'):
        if place := piece.rfind(mark, max(0, len(piece) - _SEARCHED)) + 1:
            return place
    return piece.rfind(b'"') + 1


def _opened(path: Path) -> IO[bytes]:
    return gzip.open(path, "rb") if is_packed(path) else path.open("rb")  # type: ignore[return-value]
