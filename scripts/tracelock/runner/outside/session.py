"""One training process: its steps, counted and timed, and what is done at the end of each."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from .director import Director
from .record import Folder
from .request import Request
from .steps import Pilot
from .tally import Tally
from .window import device_in_use


def plain(value: Any) -> Any:
    """Return a value as JSON takes it."""
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


class Session:
    """Everything that is known of this process. A forked child starts anew with its first step.

    The attribute ``source`` says what ends a step: ``optimizer``, ``function`` or ``profiler`` (the script's own).
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.builds: dict[str, list[dict[str, Any]]] = {"loaders": [], "optimizers": []}
        self.changes: dict[tuple[str, str], dict[str, Any]] = {}
        self.notes: list[str] = []
        self.losses: list[tuple[int, Any]] = []  # (step, loss) of the first backward passes
        self.called: int | None = None  # the optimizer whose step ran last
        self._fresh()

    def _fresh(self, profiled: bool = False) -> None:
        self.tally = Tally(self.request.watch)
        self.pilot = Pilot()
        self._stepped_at: dict[int, int] = {}  # when each optimizer last stepped
        self.director = Director(self, profiled)
        self.folder: Folder | None = None
        self.source = "function" if self.request.step else "optimizer"
        self.thread: int | None = None
        self.own_from = 0  # steps when the script's own profiler started
        self.began = time.perf_counter_ns()
        self._closed = False
        self._nested = threading.local()

    def forget(self) -> None:
        """Start anew in a forked child: the parent's steps, files and profiler are not its own."""
        self.builds = {"loaders": [], "optimizers": []}
        self.losses = []
        self._fresh(self.director.profiled)

    # Nested calls: a wrapper around an optimizer is one too, and its call and the inner one are one step.

    def enter(self) -> None:
        """Note that a call begins that can end a step."""
        self._nested.depth = getattr(self._nested, "depth", 0) + 1

    def leave(self) -> bool:
        """Note that it is over; return whether it was the outermost."""
        self._nested.depth -= 1
        return bool(self._nested.depth == 0)

    def optimizer_stepped(self, key: int, device: Any) -> None:
        """Count an optimizer's outermost call that came back, whether or not it changed the model."""
        now = time.perf_counter_ns()
        if self.source != "optimizer":
            return
        # A call that shows that the one before it had ended a step, too, ends two: each at its own time.
        before, self._stepped_at[key] = self._stepped_at.get(key, now), now
        for at in (before, now)[2 - self.pilot.stepped(key) :]:
            self.step_ended(at, device)

    def profiler_stepped(self, now: int) -> None:
        """Count a step of the script's own profiler, unless its optimizer has counted this one."""
        counted, self.source = self.source == "optimizer" and self.tally.count > self.own_from, "profiler"
        if not counted:
            self.step_ended(now)

    def step_ended(self, now: int, device: Any = None) -> None:
        """Count and time a step that ended at `now` (``time.perf_counter_ns``), and do what follows it."""
        if self.folder is None:
            self._first(device)
        acted = False
        try:
            acted = self.director.after_step(self.tally.end_step(now))
        except SystemExit:
            raise
        except Exception as error:  # whatever happens to us, the script goes on
            self.fail(error)
        if acted:
            self.tally.resume(time.perf_counter_ns())

    def changed(self, setting: str, before: Any, after: Any, place: str | None) -> None:
        """Note that a setting was applied from outside: where, from what to what, and how often."""
        change = {"setting": setting, "from": plain(before), "to": plain(after), "place": place, "count": 0}
        self.changes.setdefault((setting, str(place)), change)["count"] += 1

    def fail(self, error: Exception) -> None:
        """Give up with a word, and leave the script alone."""
        self.notes.append(f"stopped measuring: {type(error).__name__}: {error}")
        print(f"tracelock: stopped measuring: {error!r}", file=sys.stderr)
        self.director.give_up()

    def _first(self, device: Any) -> None:
        self.thread = threading.get_ident()
        self.director.device = device_in_use() if device is None else device
        self.folder = Folder(self.request.folder)
        self.folder.write_facts(self)

    def in_loop(self) -> bool:
        """Return whether this thread is the one that trains; before the first step any is taken for it."""
        return self.thread is None or self.thread == threading.get_ident()

    def close(self) -> None:
        """Write what is known at the end of the process."""
        if self._closed or self.folder is None:
            return
        self._closed = True
        try:
            self.director.finish()
            self.folder.write_record(self, ended=True)
        except Exception as error:
            print(f"tracelock: the record of this process was not written: {error!r}", file=sys.stderr)
