"""Time that the main thread spends in Python itself: by frames where they were recorded, else between operators."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from tracelock.analysis.costs import TraceRow
from tracelock.analysis.intervals import Intervals, Mask, gaps, join, union
from tracelock.analysis.mainthread import MainThread
from tracelock.analysis.names import is_loading, matching
from tracelock.analysis.nesting import Tree, nest, of_kinds
from tracelock.analysis.pauses import SHORTEST
from tracelock.analysis.places import is_users
from tracelock.analysis.selection import take
from tracelock.analysis.work import Place, PythonKind, PythonTime
from tracelock.trace.columns import HostKind, HostRows, Int64

USUAL = (
    40_000  # ns: what Python takes to get from one operator of a network to the next; with frames recorded, twice it
)
LISTED = 12
NEARLY_ALL = 0.98
SMALL = 0.002  # of the steps: not worth a row

# What a frame does, by its name or by that of a frame around it; the first that matches counts.
_KINDS: Final[tuple[tuple[PythonKind, re.Pattern[str]], ...]] = (
    ("sleep", re.compile(r"^<built-in function (sleep|nanosleep|clock_nanosleep)>|^<built-in method sleep")),
    ("subprocess", re.compile(r"fork_exec|waitpid|posix_spawn|^subprocess\.py\(|(^|/)subprocess\.py\(")),
    (
        "socket",
        re.compile(
            r"_socket\.|socket\.socket object|^<built-in (method|function) (recv|send|connect|accept|poll|select)"
        ),
    ),
    (
        "lock",
        re.compile(
            r"_thread\.(lock|RLock)|^<built-in method (acquire|wait)\b|SimpleQueue"
            r"|(^|/)threading\.py\(.*: (wait|join|acquire)"
        ),
    ),
    ("json", re.compile(r"(^|/)json/|scan_once|make_encoder|_json\.")),
    ("pickle", re.compile(r"(^|/)pickle\.py\(|_pickle|^<built-in (function|method) (loads|dumps|load|dump)\b")),
    ("regex", re.compile(r"re\.Pattern|(^|/)re(/\w+)?\.py\(|re\.Match|_sre\.")),
    ("garbage", re.compile(r"^<built-in function collect>|^<built-in method collect")),
    ("hash", re.compile(r"_hashlib|openssl_\w+|^<built-in method (hexdigest|digest|update) of _(hash|sha|md5|blake)")),
    ("copy", re.compile(r"(^|/)copy\.py\(")),
    (
        "files",
        re.compile(
            r"_io\.|^<built-in function (open|stat|listdir|scandir|read|write|fsync|lstat)>"
            r"|(^|/)(pathlib|genericpath|os|zipfile)\.py\("
        ),
    ),
)
_TORCH: Final = re.compile(
    r"^<built-in (method (?!__)\w+ of (type|Tensor|Parameter|torch\.\S+) object|function linear>)"
)
_SAMPLE: Final = re.compile(r": __getitems?__$")
_COLLATE: Final = re.compile(r"collate", re.IGNORECASE)


@dataclass(frozen=True)
class Between:
    """Stretches of the steps in which nothing recorded works, each shorter than a pause; ns."""

    total: int  # over all steps
    count: int
    excess: float  # of the median step: what other programs take from one of them is no cause


def between(main: MainThread, loops: Intervals) -> Between:
    """Return what lies between the operators of the main thread, those of loops left out."""
    known, host = main.places.known, main.places.known.trace.host
    labels = matching(known.trace.texts, host.name, lambda name: is_loading(name) or name.startswith("Optimizer."))
    mine = np.flatnonzero(labels & (host.track == known.windows.track))
    held = union(host.start[mine], host.start[mine] + host.duration[mine])
    worked = join(union(main.start, main.end), held, loops)
    found = [gaps(worked, *each) for each in zip(main.steps.start.tolist(), main.steps.end.tolist(), strict=True)]
    lengths = [each.end - each.start for each in found]
    short = [each[each < SHORTEST] for each in lengths]
    usual = 2 * USUAL if of_kinds(host, (HostKind.PYTHON,)).any() else USUAL
    excess = float(np.median([np.maximum(each - usual, 0).sum() for each in short]))
    return Between(sum(int(each.sum()) for each in short), sum(map(len, short)), excess)


def python_time(main: MainThread) -> tuple[PythonTime, ...] | None:
    """Return the time in frames themselves by kind, place and the user's line; None without frames of Python."""
    trace, track = main.places.known.trace, main.places.known.windows.track
    framed = of_kinds(trace.host, (HostKind.PYTHON,)) & (trace.host.track == track)
    if not framed.any():
        return None
    chosen = _chosen(main, framed)
    host = take(trace.host, chosen)
    tree = nest(host, (HostKind.PYTHON, HostKind.OPERATOR, HostKind.ANNOTATION))
    looked = _Frames(main, host, tree)
    found = [looked.together(key, np.array(rows)) for key, rows in looked.groups().items()]
    worth = SMALL * sum(end - start for start, end in zip(main.steps.start, main.steps.end, strict=True)) / 1000
    found = [each for each in found if each.host_us * len(main.steps) >= worth]
    return tuple(sorted(found, key=lambda each: -each.host_us)[:LISTED])


def _chosen(main: MainThread, framed: Mask) -> Mask:
    """Return the rows to nest: frames, operators and labels of the main thread that touch the complete steps."""
    host = main.places.known.trace.host
    rows = framed | of_kinds(host, (HostKind.OPERATOR, HostKind.ANNOTATION)) & (
        host.track == main.places.known.windows.track
    )
    low, high = int(main.steps.start[0]), int(main.steps.end[-1])
    found: Mask = rows & (host.start < high) & (host.start + host.duration > low)
    return found


class _Frames:
    """The frames of the main thread, nested among its operators; columns of the rows that `_chosen` took."""

    def __init__(self, main: MainThread, host: HostRows, tree: Tree) -> None:
        self.main, self.host, self.parent = main, host, tree.parent
        self.texts = main.places.known.trace.texts
        self.own = np.where(host.kind == HostKind.PYTHON, tree.self_time, 0)
        self.own[main.steps.of(host.start) < 0] = 0  # what began before the first step is not of it
        used = np.unique(host.name)
        self._kinds = {int(name): _kind(self.texts[name]) for name in used.tolist()}
        frames = host.kind == HostKind.PYTHON
        self._users = frames & matching(self.texts, host.name, is_users)
        self._kinded = frames & np.isin(host.name, [name for name, kind in self._kinds.items() if kind])
        self._placed = frames & matching(self.texts, host.name, lambda name: _place(name) is not None)
        self._loads = matching(self.texts, host.name, is_loading)

    def heavy(self) -> Int64:
        """Return the frames that make up nearly all of the time in frames, the longest first."""
        order = np.argsort(-self.own, kind="stable")
        count = int(np.searchsorted(np.cumsum(self.own[order]), NEARLY_ALL * self.own.sum()))
        found: Int64 = order[: count + 1].astype(np.int64)
        return found[self.own[found] > 0]

    def nearest(self, rows: Int64, wanted: Mask) -> Int64:
        """Return for each of `rows` itself or the innermost row around it that is `wanted`; -1 without."""
        at = rows.copy()
        climbing = np.flatnonzero(~wanted[at])
        while len(climbing):
            at[climbing] = self.parent[at[climbing]]
            climbing = climbing[at[climbing] >= 0]
            climbing = climbing[~wanted[at[climbing]]]
        return at

    def groups(self) -> dict[tuple[PythonKind, Place, str | None], list[int]]:
        """Return the heavy frames by what they do, where, and the user's line; those of PyTorch itself left out."""
        rows = self.heavy()
        user = self.nearest(rows, self._users)
        told = self.nearest(rows, self._kinded | self._users)
        place, loads = self.nearest(rows, self._placed), self.nearest(rows, self._loads) >= 0
        around = np.maximum(self.parent[rows], 0)
        built_in = matching(self.texts, self.host.name[rows], lambda name: name.startswith("<built-in"))
        theirs = self._users[rows] | built_in & (self.parent[rows] >= 0) & self._users[around]
        found: dict[tuple[PythonKind, Place, str | None], list[int]] = {}
        columns = (rows, user, told, place, loads, theirs)
        for row, code, kind, where, in_loader, mine in zip(*(each.tolist() for each in columns), strict=True):
            what = self._kinds[int(self.host.name[kind])] if kind >= 0 else None
            if what is None and not mine:
                continue
            inside: Place = ((_place(self._text(where)) if where >= 0 else None) or "loader") if in_loader else "step"
            what = what or ("torch" if _TORCH.match(self._text(row)) else "python")
            found.setdefault((what, inside, self._text(code) if code >= 0 else None), []).append(row)
        return found

    def together(self, key: tuple[PythonKind, Place, str | None], rows: Int64) -> PythonTime:
        """Return the frames of one key as one."""
        kind, place, code = key
        count, origin = len(self.main.steps), self.main.places.known.origin
        return PythonTime(
            kind=kind,
            place=place,
            code=code,
            calls_per_step=len(rows) / count,
            steps=len(np.unique(self.main.steps.of(self.host.start[rows]))),
            host_us=int(self.own[rows].sum()) / count / 1000,
            rows=tuple(self._row(row, code, origin) for row in rows[:3].tolist()),
        )

    def _row(self, row: int, code: str | None, origin: int) -> TraceRow:
        start, spent = (int(self.host.start[row]) - origin) / 1000, int(self.host.duration[row]) / 1000
        return TraceRow(self._text(row), start, spent, None, code)

    def _text(self, row: int) -> str:
        return self.texts[int(self.host.name[row])]


def _kind(frame: str) -> PythonKind | None:
    return next((kind for kind, pattern in _KINDS if pattern.search(frame)), None)


def _place(frame: str) -> Place | None:
    if _SAMPLE.search(frame):
        return "sample"
    return "collate" if _COLLATE.search(frame) else None
