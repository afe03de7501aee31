"""Further tables of one trace: memory, loading, launches, communication, threads, and what is doubtful."""

from __future__ import annotations

from collections.abc import Iterator

from tracelock.analysis.model import Analysis, Collectives, Launches, Loading, Memory, Threads
from tracelock.analysis.sections import MemoryOwner
from tracelock.cli import _format as fmt
from tracelock.cli._grid import Section, grid, more


def further(found: Analysis, top: int) -> Iterator[Section]:
    """Yield the tables of memory, loading, launches, communication and threads, as far as `found` fills them."""
    if found.memory:
        yield from _memory(found.memory, top)
    if found.loading is not None:
        yield from _loading(found.loading, top)
    yield from map(_launches, found.launches)
    yield from (_collectives(each, top) for each in found.collectives)
    if found.threads is not None and (len(found.threads.items) > 1 or not found.gpus):
        yield _threads(found.threads, top)


def doubts(found: Analysis) -> Iterator[Section]:
    """Yield what was excluded or mended, and what could not be known."""
    if found.trace.warnings:
        noted = [(each.code, fmt.count(each.count), each.message) for each in found.trace.warnings]
        yield f"Warnings ({found.trace.quality} file)", grid(("", "count", "what"), noted, folded=(2,))
    if found.unknown:
        reasons: dict[str, list[str]] = {}
        for key, why in found.unknown.items():
            reasons.setdefault(why, []).append(key)
        rows = [(why, ", ".join(keys)) for why, keys in reasons.items()]
        yield "Not known", grid(("", "figures"), rows, folded=(0, 1))


def _memory(memory: tuple[Memory, ...], top: int) -> Iterator[Section]:
    rows = [
        (
            each.device,
            fmt.size(each.peak_allocated_bytes),
            fmt.size(each.peak_reserved_bytes),
            fmt.size(each.capacity_bytes),
            _growth(each.growth_bytes_per_step, each.growth_interval),
        )
        for each in memory
    ]
    yield "Memory", grid(("", "peak", "reserved", "device has", "growth a step (95 %)"), rows)
    for each in memory:
        if each.owners and each.device != "cpu":
            owners = [
                (
                    _owner_name(owner),
                    fmt.count(owner.allocations),
                    fmt.size(owner.allocated_bytes),
                    fmt.size(owner.kept_bytes),
                )
                for owner in each.owners[:top]
            ]
            title = more(f"Who allocated on {each.device}", top, len(each.owners))
            yield title, grid(("", "calls", "allocated", "kept to the end"), owners)


def _owner_name(owner: MemoryOwner) -> str:
    return f"{owner.caller} › {owner.name}" if owner.caller else owner.name or "outside of operators"


def _growth(growth: float | None, interval: tuple[float, float] | None) -> str:
    if growth is None or interval is None:
        return fmt.size(growth)
    return f"{fmt.size(round(growth))} ({fmt.size(round(interval[0]))} to {fmt.size(round(interval[1]))})"


def _loading(loading: Loading, top: int) -> Iterator[Section]:
    by = loading.mode or ", ".join(loading.iterators)
    share = "" if loading.share is None else f": {fmt.share(loading.share)} of the host's time in the steps"
    waits = [(each.step, fmt.count(each.calls), fmt.time(each.wait_us)) for each in loading.waits[:top]]
    if waits:
        yield f"Loading by {by}{share}", grid(("", "calls", "wait"), waits)
    title = more(f"Inside {fmt.time(loading.wait_us)} of loading", top, len(loading.operators))
    inside = [(each.name, fmt.count(each.calls), fmt.time(each.self_us)) for each in loading.operators[:top]]
    inside.append(("no operator: Python, decoding, waiting", "", fmt.time(loading.outside_operators_us)))
    yield title, grid(("", "calls", "self CPU"), inside)


def _launches(each: Launches) -> Section:
    longest = max((queue.longest for queue in each.queues), default=None)
    rows = [
        ("launch call, mean", fmt.time(each.call_us)),
        ("from its end to the start of the work, median", fmt.time(each.delay_median_us)),
        ("  the same, 95th percentile", fmt.time(each.delay_p95_us)),
        ("  the same where the stream was free, median", fmt.time(each.free_start_us)),
        ("longest queue of a stream", fmt.count(longest)),
        ("work shorter than its launch call", f"{each.short:,} of {each.linked - each.graph_rows:,}"),
        ("work shorter than 10 µs", f"{each.tiny:,} of {each.linked + each.unlinked:,}"),
    ]
    if each.graph_rows:
        rows.append(("work launched as graphs", f"{each.graph_rows:,} of {each.linked + each.unlinked:,}"))
    return f"Launches for GPU {each.device}", grid(("", ""), rows)


def _collectives(each: Collectives, top: int) -> Section:
    where = "threads of the host" if each.device < 0 else f"GPU {each.device}"
    title = f"Communication of {where}: {fmt.time(each.union_us)}, {fmt.share(each.overlap_share)} beside computation"
    rows = [
        (
            f"{item.name} {item.dtype or ''}".strip(),
            fmt.count(item.calls),
            fmt.count(item.group_size),
            fmt.size(item.bytes),
            fmt.time(item.total_us),
            fmt.rate(item.bus_bandwidth),
        )
        for item in each.items[:top]
    ]
    return more(title, top, len(each.items)), grid(("", "calls", "ranks", "bytes", "time", "bus, at least"), rows)


def _threads(threads: Threads, top: int) -> Section:
    rows = [(each.name, each.role, fmt.time(each.busy_us), fmt.share(each.share)) for each in threads.items[:top]]
    title = f"Threads over {fmt.time(threads.window_us)}, {threads.most_at_once} at once at most"
    return more(title, top, len(threads.items)), grid(("", "role", "busy", "share"), rows, folded=(1,))
