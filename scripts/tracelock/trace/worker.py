"""One of several processes that read parts of one large file: its arguments are a request and a descriptor.

Columns go into the file that the parent opened, everything else back through standard output as JSON.
"""

from __future__ import annotations

import gc
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import msgspec

from tracelock.trace.decode import StructDecoder
from tracelock.trace.source import PlainSource
from tracelock.trace.store import Spill, Store
from tracelock.trace.walk import Walker
from tracelock.trace.window import Window

HEAD: Final = b'{"":['  # stands for the head of the document, which another process reads


class Request(msgspec.Struct):
    """Which part of which file: bytes `start` to `stop`, both between two events, or the end of the file."""

    path: str
    start: int
    stop: int
    separator: bytes
    last: bool


class Part(msgspec.Struct):
    """What was read of a part; columns by table, kind and name are places in the file of columns."""

    columns: list[tuple[int, int, int, dict[str, list[int]]]]  # table, kind, rows, places by name of column
    texts: list[str]
    lanes: list[tuple[int | str, int | str]]
    collectives: list[dict[str, Any]]
    labels: list[tuple[int | str, int | str | None, dict[str, str]]]
    unused: dict[str, int]
    spans: list[tuple[int, int]]
    counts: dict[str, int]
    events: int
    metadata: bytes
    closed: bool
    regular: bool  # False if the part did not begin or end between two events, or holds halves of them
    json_bytes: int


def read_part(request: Request, file: int) -> Part:
    """Read a part of a file; its columns are written to the open file with the descriptor `file`."""
    store, decoder = Store(Spill(file)), StructDecoder()
    with closing(PlainSource(Path(request.path), request.start, request.stop)) as source:
        walker = Walker(Window(source), decoder, store.keep)
        walker.separator, walker.metadata = request.separator, HEAD
        closed = walker.walk()
        if request.last:
            walker.finish(closed)
    context = decoder.context
    return Part(
        columns=store.written(),
        texts=context.texts.values_in_order,
        lanes=context.tracks.lanes,
        collectives=context.collectives.values_in_order(),
        labels=[(pid, tid, names) for (pid, tid), names in context.labels.items()],
        unused=context.unused,
        spans=context.spans,
        counts=context.tally.counts(),
        events=context.events,
        metadata=walker.metadata.removeprefix(HEAD),
        closed=closed,
        regular=_is_regular(closed, walker, request) and not context.pairs.used,
        json_bytes=walker.window.passed,
    )


def _is_regular(closed: bool, walker: Walker, request: Request) -> bool:
    return closed == request.last and not (walker.lost_end and not request.last)


def main() -> None:
    """Read the part that the command line names."""
    gc.disable()
    part = read_part(msgspec.json.decode(sys.argv[1], type=Request), int(sys.argv[2]))
    sys.stdout.buffer.write(msgspec.json.encode(part))


if __name__ == "__main__":
    main()
