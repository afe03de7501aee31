"""Reading a trace: from a path to columns."""

from __future__ import annotations

import errno
import gc
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from tracelock.errors import Problem, TracelockError
from tracelock.trace.columns import Trace
from tracelock.trace.context import Context
from tracelock.trace.decode import StructDecoder
from tracelock.trace.facts import facts, read_metadata, tracks
from tracelock.trace.kinds import KINETO_KEYS
from tracelock.trace.origin import note_origin
from tracelock.trace.parallel import read_parts, workers_for
from tracelock.trace.source import open_source
from tracelock.trace.store import SPILL_BYTES, Store, release_table
from tracelock.trace.tables import Tables
from tracelock.trace.walk import Tick, Walker
from tracelock.trace.window import Window

Progress: TypeAlias = Callable[[int, int], None]
"""Called now and then with the bytes of the file that were read, and its size."""


def read_trace(
    path: str | Path,
    progress: Progress | None = None,
    *,
    workers: int | None = None,
    spill_bytes: int = SPILL_BYTES,
) -> Trace:
    """Read a trace of the PyTorch profiler, of any year and device, whole or damaged.

    Parameters
    ----------
    path
        A ``.json`` or ``.json.gz`` file, or a ``.zip`` of one such; the content counts, not the name.
    progress
        Called after each unit with the bytes of the file done and in all.
    workers
        Processes to read a plain file with; by default two where it is large. Compressed files are read by one, and
        decompressed in a thread beside it.
    spill_bytes
        Size of the columns beyond which they are kept in a temporary file, which ends with the trace.

    Returns
    -------
    The trace, its times in int64 nanoseconds; ``facts.warnings`` tells what was mended or left out.

    Raises
    ------
    TracelockError
        If the file cannot be read or is no trace.
    """
    path = Path(path)
    try:
        with _no_collector():
            processes = workers_for(path, workers)
            read = _read_in_parts(path, processes, spill_bytes, progress) if processes > 1 else None
            return _trace(path, read or _read(path, spill_bytes, progress))
    except OSError as error:
        folder = f"columns of large traces go to {tempfile.gettempdir()}; set TMPDIR to a folder with more room"
        hint = folder if error.errno == errno.ENOSPC else ""
        raise TracelockError(
            Problem(str(path), f"cannot be read to its end: {error.strerror or error}", hint)
        ) from None


def release(trace: Trace) -> None:
    """Let go of memory that columns of a large trace take while they are looked at; they stay usable.

    Columns beyond `spill_bytes` are mapped from a temporary file. What was looked at stays in memory until the system
    needs it, and counts as the process's. An analysis calls this between its parts to keep its peak low.
    """
    for table in (trace.host, trace.device, trace.memory, trace.flows):
        release_table(table)


class _Read(NamedTuple):
    """A file whose rows are in `store`."""

    store: Store
    context: Context
    metadata: bytes  # the text around the events
    form: str  # see Walker.find_events
    closed: bool  # whether the list of events was closed
    json_bytes: int


def _read(path: Path, spill_bytes: int, progress: Progress | None) -> _Read:
    """Read the file in this process."""
    store, decoder = Store(spill_bytes), StructDecoder()
    with closing(open_source(path)) as source:
        tick = _tick(progress, path.stat().st_size)
        walker = Walker(Window(source), decoder, store.keep, tick)
        form = walker.find_events()
        closed = walker.walk() if form in ("object", "list") else True
        walker.finish(closed)
        decoder.context.tally.add("archive-cut-off", source.failed)
    return _Read(store, decoder.context, walker.metadata, form, closed, walker.window.passed)


def _read_in_parts(path: Path, workers: int, spill_bytes: int, progress: Progress | None) -> _Read | None:
    """Read the file with several processes, or return None if its layout does not allow that."""
    store, decoder = Store(spill_bytes), StructDecoder()
    read = read_parts(path, workers, store, decoder, _tick(progress, path.stat().st_size, workers))
    if read is None:
        return None
    walker, closed = read
    return _Read(store, decoder.context, walker.metadata, "object", closed, walker.window.passed)


def _tick(progress: Progress | None, size: int, share: int = 1) -> Tick | None:
    """Return what is called with the bytes done of one of `share` equal parts."""
    return None if progress is None else lambda done: progress(min(done * share, size), size)


def _check_is_trace(path: Path, form: str, keys: Mapping[str, Any], context: Context, text: bytes) -> None:
    """Raise unless the file has events, or is an object that a profiler wrote."""
    if context.events:
        return
    found = ", ".join(map(repr, list(keys)[:5]))
    what = {
        "other": f"is no JSON object or list: it begins with {text[:24].decode('utf-8', 'replace')!r}",
        "list": "is a JSON list without a single event (an object with a phase 'ph')",
        "metadata": f"has no 'traceEvents' and none of the keys of a PyTorch trace (keys: {found or 'none readable'})",
    }
    if form in what and not KINETO_KEYS & keys.keys():
        hint = "expected what torch.profiler's export_chrome_trace or tensorboard_trace_handler writes"
        raise TracelockError(Problem(str(path), what[form], hint))
    if form == "metadata" and not context.tally.counts().get("cut-off"):
        line = "has the keys of a PyTorch trace, but no list 'traceEvents': nothing is known of what ran"
        raise TracelockError(Problem(str(path), line, f"the events were removed, or never written; its keys: {found}"))
    if form == "metadata":
        context.tally.add("no-events")
    elif not context.tally.counts():
        context.tally.add("empty-events")


def _trace(path: Path, read: _Read) -> Trace:
    """Return the trace of everything that was read."""
    store, context = read.store, read.context
    keys = read_metadata(read.metadata, read.closed, context.tally)
    context.pairs.finish(context.tally)
    _check_is_trace(path, read.form, keys, context, read.metadata)
    tables = Tables(store, context.tally)
    host, device, memory, flows = tables.host(), tables.device(), tables.memory(), tables.flows()
    lanes = tracks(context)
    note_origin(lanes, host, device, context.tally)
    return Trace(
        facts=facts(path, keys, context, read.json_bytes),
        texts=context.texts.values_in_order,
        tracks=lanes,
        collectives=context.collectives.values_in_order(),
        host=host,
        device=device,
        memory=memory,
        flows=flows,
        path=path,
    )


@contextmanager
def _no_collector() -> Iterator[None]:
    """Keep the garbage collector off: the events of a unit hold no cycles, and looking for them doubles the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
