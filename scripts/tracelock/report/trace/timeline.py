"""What the timeline of a page holds: lanes, steps, rows with their details, and where it should open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracelock.analysis.idle import CAUSES
from tracelock.analysis.parts import IDLE_LABELS
from tracelock.analysis.prepared import Prepared
from tracelock.analysis.steps import MARKED, Windows
from tracelock.report.trace import pack
from tracelock.report.trace.lanes import IDLE, Lane, lanes
from tracelock.report.trace.merge import Merged, merge
from tracelock.report.trace.words import clipped
from tracelock.trace.columns import Int64

MOST = 400_000  # rows of one page: about 2.5 MB of it


def typical_and_slowest(windows: Windows) -> tuple[int | None, int | None]:
    """Return the complete step nearest to the median duration, and the longest one; None without complete steps."""
    complete = np.flatnonzero(windows.complete)
    if not len(complete):
        return None, None
    length = (windows.end - windows.start)[complete]
    return int(complete[np.argmin(np.abs(length - np.median(length)))]), int(complete[np.argmax(length)])


@dataclass(frozen=True)
class Drawn:
    """A timeline: its lanes, what `assets/timeline-data.js` needs to know of it, and its rows as letters."""

    lanes: Sequence[Lane]
    about: dict[str, Any]
    rows: str


def draw(known: Prepared, most: int = MOST) -> Drawn:
    """Return the timeline of a trace.

    Parameters
    ----------
    most
        Rows that there is room for; beyond them short ones are merged, least in the typical and the slowest step.
    """
    windows, origin = known.windows, known.origin
    typical, slowest = typical_and_slowest(windows)
    chosen = {each for each in (typical, slowest) if each is not None}
    whole = [(int(windows.start[each]) - origin, int(windows.end[each]) - origin) for each in sorted(chosen)]
    every = lanes(known)
    merged, resolution = merge(every, most, whole)
    book = _Book(known)
    parts = [_columns(known, each, book) for each in merged]
    data, sizes = pack.columns([column for part in parts for column in part])
    described = [_lane(each, sizes[9 * place]) for place, each in enumerate(merged)]
    about = {
        "lanes": described,
        "steps": _steps(windows, origin),
        "typical": typical,
        "slowest": slowest,
        "marked": windows.source == MARKED,
        "span": _span(every, windows, origin),
        "resolution_us": resolution / 1000,
        "rows": sum(map(len, every)),
        "shown": sum(map(len, merged)),
        "texts": book.texts,
        "causes": [IDLE_LABELS[cause] for cause in CAUSES],
    }
    return Drawn(every, about, pack.letters(data))


def _lane(each: Merged, rows: int) -> dict[str, Any]:
    lane = each.lane
    return {
        "name": clipped(lane.name),
        "kind": lane.kind,
        "group": clipped(lane.group),
        "rows": rows,
        "levels": int(lane.level.max(initial=-1)) + 1,
        "all": int(each.count.sum()),
    }


def _steps(windows: Windows, origin: int) -> list[list[Any]]:
    """Return name, start and duration (µs) of each step, and whether it is complete."""
    start = ((windows.start - origin) / 1000).tolist()
    length = ((windows.end - windows.start) / 1000).tolist()
    rows = zip(windows.names, start, length, windows.complete.tolist(), strict=True)
    return [[name, low, lasts, whole] for name, low, lasts, whole in rows]


def _span(every: Sequence[Lane], windows: Windows, origin: int) -> list[float]:
    """Return the first and the last moment that anything is drawn at, µs."""
    lows = [int(lane.start.min()) for lane in every if len(lane)]
    highs = [int((lane.start + lane.duration).max()) for lane in every if len(lane)]
    highs += [int(windows.end.max()) - origin] if len(windows) else []
    return [min(lows, default=0) / 1000, max(highs, default=1) / 1000]


class _Book:
    """The texts of a page, each once, under new and smaller numbers."""

    def __init__(self, known: Prepared) -> None:
        self._source = known.trace.texts
        self._place = np.full(len(self._source) + 1, -1, np.int64)
        self.texts: list[str] = []

    def places(self, texts: Int64) -> Int64:
        """Return the number of each text, -1 for -1."""
        for text in np.unique(texts[texts >= 0]).tolist():
            if self._place[text] < 0:
                self._place[text] = len(self.texts)
                self.texts.append(clipped(self._source[text]))
        return np.where(texts >= 0, self._place[texts], -1)


def _columns(known: Prepared, each: Merged, book: _Book) -> list[Int64]:
    """Return start (ns, as differences), duration, level, colour, name, count, held, detail and shapes or launch.

    Of a host row the last two are the numbers of its shapes and of its written stack; of a device row the operator
    that launched it and how long before its start the launch began (ns; 0 where it is not known, else one more).
    """
    lane = each.lane
    named = lane.text if lane.kind == "idle" else book.places(lane.text)
    color = lane.color if lane.kind != "idle" else lane.text + IDLE
    detail, other = _details(known, lane, book)
    start = np.diff(lane.start, prepend=np.int64(0))
    held = np.where(each.count > 1, each.held, 0)
    columns = (start, lane.duration, lane.level.astype(np.int64), color, named, each.count - 1, held, detail, other)
    return [np.asarray(column, np.int64) for column in columns]


def _details(known: Prepared, lane: Lane, book: _Book) -> tuple[Int64, Int64]:
    host, one = known.trace.host, np.full(len(lane), -1, np.int64)
    rows = np.flatnonzero(lane.row >= 0)
    at = lane.row[rows]
    if lane.kind in ("calls", "python"):
        first, second = one.copy(), one.copy()
        first[rows], second[rows] = (
            book.places(host.shapes[at].astype(np.int64)),
            book.places(host.stack[at].astype(np.int64)),
        )
        return first, second
    first, second = one.copy(), np.zeros(len(lane), np.int64)
    if lane.kind == "stream" and len(host):
        operator, launch = known.links.operator[at], known.links.launch[at]
        first[rows] = book.places(np.where(operator >= 0, host.name[operator], -1).astype(np.int64))
        delay = known.trace.device.start[at] - host.start[launch]
        second[rows] = np.where(launch >= 0, delay + np.where(delay >= 0, 1, 0), 0)
    return first, second
