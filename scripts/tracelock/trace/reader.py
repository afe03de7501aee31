"""Reading a trace: from a path to columns."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from tracelock.errors import Problem, TracelockError
from tracelock.trace.columnise import Batch
from tracelock.trace.columns import Trace
from tracelock.trace.context import Context
from tracelock.trace.decode import StructDecoder
from tracelock.trace.facts import KINETO_KEYS, facts, read_metadata, tracks
from tracelock.trace.source import open_source
from tracelock.trace.store import SPILL_BYTES, Store
from tracelock.trace.tables import Tables
from tracelock.trace.walk import Walker
from tracelock.trace.window import Window

Progress: TypeAlias = Callable[[int, int], None]
"""Called now and then with the bytes of the file that were read, and its size."""


def read_trace(
    path: str | Path,
    progress: Progress | None = None,
    *,
    spill_bytes: int = SPILL_BYTES,
) -> Trace:
    """Read a trace of the PyTorch profiler, of any year and device, whole or damaged.

    Parameters
    ----------
    path
        A ``.json`` or ``.json.gz`` file, or a ``.zip`` of one such; the content counts, not the name.
    progress
        Called after each unit with the bytes of the file done and in all.
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
    store, decoder = Store(spill_bytes), StructDecoder()
    with _no_collector():
        keys, json_bytes = _read(path, store, decoder, progress)
        return _trace(path, keys, decoder.context, store, json_bytes)


def _read(path: Path, store: Store, decoder: StructDecoder, progress: Progress | None) -> tuple[dict[str, Any], int]:
    """Fill `store` with the rows of the file; return its metadata, and the bytes of JSON that were read."""
    tally = decoder.context.tally
    with closing(open_source(path)) as source:
        size = path.stat().st_size

        def keep(batches: list[Batch]) -> None:
            store.keep(batches)
            if progress is not None:
                progress(source.done, size)

        walker = Walker(Window(source), decoder, keep)
        form = walker.find_events()
        closed = walker.walk() if form in ("object", "list") else True
        walker.finish(closed)
        tally.add("archive-cut-off", source.failed)
    keys = read_metadata(walker.metadata, closed, tally)
    _check_is_trace(path, form, keys, decoder.context, walker.metadata)
    return keys, walker.window.passed


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
    context.tally.add("no-events" if form == "metadata" else "empty-events")


def _trace(path: Path, keys: Mapping[str, Any], context: Context, store: Store, json_bytes: int) -> Trace:
    """Return the trace of everything that was read."""
    tables = Tables(store, context.tally)
    host, device, memory, flows = tables.host(), tables.device(), tables.memory(), tables.flows()
    return Trace(
        facts=facts(path, keys, context, json_bytes),
        texts=context.texts.values_in_order,
        tracks=tracks(context),
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
