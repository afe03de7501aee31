"""The threads of the process: what the main thread spent its time on, and who else worked.

Where there is no accelerator, these are the questions that are asked of one elsewhere: busy, idle, waiting for what.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tracelock.analysis.collective_calls import HOST, Call
from tracelock.analysis.groups import group
from tracelock.analysis.intervals import EMPTY, Intervals, Mask, clip, join, length, subtract, union
from tracelock.analysis.names import is_loading, is_step, matching
from tracelock.analysis.nesting import Tree, of_kinds
from tracelock.analysis.operators import operator_rows
from tracelock.analysis.sections import MainThread, Thread, Threads
from tracelock.trace.columns import HostKind, Int64, Trace, Track

ENGINE = "autograd::engine::evaluate_function"
Rows = npt.NDArray[np.intp]
REPEATS = 8  # calls that tell a fast one from a slow one


def threads(trace: Trace, tree: Tree, calls: Sequence[Call], low: int, high: int) -> Threads | None:
    """Return what the threads did within [low, high) ns; None where the trace has no work of the host.

    Parameters
    ----------
    calls
        The collectives of the trace; those of the host's threads are work here.

    """
    hosted = [call for call in calls if call.device == HOST]
    busy = {track: clip(time, low, high) for track, time in _busy(trace, hosted).items()}
    busy = {track: time for track, time in busy.items() if len(time)}
    main = _main(trace, busy)
    if main is None or high <= low:
        return None
    roles = _roles(hosted, _backward_tracks(trace), busy, main)
    called, window = _operators_by_track(trace, low, high), high - low
    items = [_thread(trace.tracks[track], roles[track], time, called[track], window) for track, time in busy.items()]
    together = length(join(*busy.values()))
    return Threads(
        window_us=window / 1000,
        main_us=_main_thread(trace, hosted, busy, roles, (low, high)),
        items=tuple(sorted(items, key=lambda item: (-item.busy_us, item.name))),
        concurrency=sum(map(length, busy.values())) / together if together else None,
        most_at_once=_most_at_once(list(busy.values())),
        slowdown=_slowdown(trace, tree, low, high),
    )


def _busy(trace: Trace, hosted: Sequence[Call]) -> dict[int, Intervals]:
    """Return when each track worked or waited in a row of its own."""
    host = trace.host
    rows = of_kinds(host, (HostKind.OPERATOR, HostKind.RUNTIME, HostKind.DRIVER)) & ~_steps(trace) | _waits(trace)
    chosen = np.flatnonzero(rows)
    chosen = chosen[np.argsort(host.track[chosen], kind="stable")]
    bounds = np.flatnonzero(np.diff(host.track[chosen])) + 1
    found = {int(host.track[part[0]]): _covered(trace, part) for part in np.split(chosen, bounds) if len(part)}
    for track in {call.track for call in hosted}:
        found[track] = join(found.get(track, EMPTY), _collectives(hosted, track))
    return found


def _steps(trace: Trace) -> Mask:
    return matching(trace.texts, trace.host.name, is_step)


def _waits(trace: Trace) -> Mask:
    return matching(trace.texts, trace.host.name, is_loading)


def _covered(trace: Trace, rows: Mask | Rows) -> Intervals:
    return union(trace.host.start[rows], trace.host.start[rows] + trace.host.duration[rows])


def _collectives(hosted: Sequence[Call], track: int) -> Intervals:
    mine = [call for call in hosted if call.track == track]
    return union(np.array([call.start for call in mine], np.int64), np.array([call.end for call in mine], np.int64))


def _main(trace: Trace, busy: dict[int, Intervals]) -> int | None:
    """Return the track of the training loop: of the steps, else of the waits for data, else the busiest forward one."""
    host = trace.host
    for marks in (_steps(trace), _waits(trace)):
        if marks.any():
            return int(np.bincount(host.track[marks]).argmax())
    backward = _backward_tracks(trace)
    forward = [track for track in busy if track not in backward] or list(busy)
    return max(forward, key=lambda track: (length(busy[track]), -track), default=None)


def _backward_tracks(trace: Trace) -> set[int]:
    """Return the tracks that run backward passes: the autograd engine's rows, or rows of another forward thread."""
    host = trace.host
    engine = matching(trace.texts, host.name, lambda name: name.startswith(ENGINE))
    return set(np.unique(host.track[engine | (host.forward_thread > 0)]).tolist())


def _roles(hosted: Sequence[Call], backward: set[int], busy: dict[int, Intervals], main: int) -> dict[int, str]:
    known = dict.fromkeys(backward, "backward") | {call.track: "communication" for call in hosted} | {main: "main"}
    return {track: known.get(track, "other") for track in busy}


def _operators_by_track(trace: Trace, low: int, high: int) -> Int64:
    host = trace.host
    chosen = operator_rows(trace) & (host.start >= low) & (host.start < high)
    return np.bincount(host.track[chosen], minlength=len(trace.tracks))


def _thread(track: Track, role: str, busy: Intervals, operators: np.int64, window: int) -> Thread:
    time = length(busy)
    return Thread(_name(track), role, time / 1000, time / window, int(operators))


def _name(track: Track) -> str:
    called = track.thread_name or ""
    plain = called in ("", str(track.tid)) or called.startswith("thread ")
    return f"{track.pid}/{track.tid}" if plain else f"{track.pid}/{track.tid} {called}"


def _main_thread(
    trace: Trace,
    hosted: Sequence[Call],
    busy: dict[int, Intervals],
    roles: dict[int, str],
    window: tuple[int, int],
) -> MainThread:
    main = next((track for track, role in roles.items() if role == "main"), -1)
    host = trace.host
    mine = host.track == main
    calls = of_kinds(host, (HostKind.RUNTIME, HostKind.DRIVER))

    def of_role(role: str) -> Intervals:
        return join(*(busy[track] for track, each in roles.items() if each == role))

    parts = (
        _covered(trace, mine & _waits(trace)),
        _collectives(hosted, main),
        _covered(trace, mine & calls),
        busy.get(main, EMPTY),  # what is left of it: operators
        of_role("communication"),
        of_role("backward"),
    )
    taken, lengths = EMPTY, []
    for part in parts:
        lengths.append(length(subtract(clip(part, *window), taken)) / 1000)
        taken = join(taken, clip(part, *window))
    loading, own, runtime, operators, communication, backward = lengths
    other = (window[1] - window[0] - length(taken)) / 1000
    return MainThread(loading, own + communication, runtime, operators, backward, other)


def _most_at_once(busy: Sequence[Intervals]) -> int:
    """Return how many of `busy` hold one moment at most."""
    if not busy:
        return 0
    times = np.concatenate([each.start for each in busy] + [each.end for each in busy])
    change = np.repeat((1, -1), len(times) // 2)
    order = np.lexsort((change, times))  # at a tie an end comes before a start
    return int(np.cumsum(change[order]).max())


def _slowdown(trace: Trace, tree: Tree, low: int, high: int) -> float | None:
    """Return the own time of repeated operators over what it were if each call took as long as the fast ones do.

    Repeated: same name and same recorded shapes, at least REPEATS times. Threads that take the cores from each other
    make the same work take longer at times; so do caches, and sizes that the shapes do not show.
    """
    host = trace.host
    chosen = of_kinds(host, (HostKind.OPERATOR,)) & (host.shapes >= 0) & (host.start >= low) & (host.start < high)
    rows = np.flatnonzero(chosen & ~_waits(trace))
    if not len(rows):
        return None
    groups = group(host.name[rows], host.shapes[rows])
    own = tree.self_time[rows]
    order = np.lexsort((own, groups.member))
    first = np.cumsum(groups.counts) - groups.counts
    fast = own[order][first + (groups.counts - 1) // 10]
    many = groups.counts >= REPEATS
    total = int(groups.total(own)[many].sum())
    ideal = int((fast * groups.counts)[many].sum())
    return total / ideal if ideal else None
