"""What happens at the end of each step: the warm-up ends, steps are timed, the profiler records, the script goes on."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from . import ranks
from .schedule import PROFILER_WARMUP, Schedule, is_steady, plan
from .tally import Step
from .window import Window, device_mark, synchronize

if TYPE_CHECKING:
    from .labels import Labels
    from .session import Session

WARMUP, TIMED, WINDOW, DONE = "warmup", "timed", "window", "done"
_TIMED_ENOUGH = 5


class Director:
    """Leads one process through warm-up, timed steps and window; on a call of ``watch``, through a window alone."""

    def __init__(self, session: Session, profiled: bool = False) -> None:
        self._session = session
        # In a child of a process that has used the profiler, starting it again crashes.
        self.inherited = self.profiled = profiled
        self.phase = DONE if session.request.watch else WARMUP
        self.schedule: Schedule | None = None
        self.device: Any = None
        self.window: Window | None = None
        self.finished: Window | None = None
        self.windows = 0
        self._active = 0
        self.own_profiler = False  # the script's own is in charge
        self.recording = False  # and it records now
        self.timed_from = self.timed_to = 0
        self.timed_began = self.timed_ended = 0.0
        self.peaks: dict[str, int | None] = {}
        self.marks: list[tuple[int, Any]] = []
        self.stopped_by: str | None = None
        self.trace: str | None = None
        self.ending = 0

    @property
    def labels(self) -> Labels | None:
        """The labels in force, None outside of the window."""
        return self.window.labels if self.window is not None else None

    def after_step(self, step: Step) -> bool:
        """Do what follows `step`; return whether it took time that is not the script's."""
        if self.ending:
            self._end_script()
        folder = self._session.folder
        if self._session.request.watch:
            return self._watched(step)
        if folder is not None:
            folder.count(self._session.tally.count)
        if self.phase == WARMUP:
            return self._warming()
        if self.phase == TIMED:
            return self._timing()
        if self.phase == WINDOW:
            return self._recording()
        return False

    def _warming(self) -> bool:
        session, done = self._session, self._session.tally.count
        if self.recording:
            return False
        if self.schedule is None:
            self.schedule = ranks.agreed(session.request.folder, done) if ranks.several() else None
        if self.schedule is None and ranks.leads() and self._is_warm(done):
            self.schedule = self._plan(done)
            if ranks.several():
                ranks.announce(session.request.folder, self.schedule)
        if self.schedule is None or done < self.schedule.timed:
            return False
        self._begin_timing(done)
        return True

    def _is_warm(self, done: int) -> bool:
        asked = self._session.request.warmup
        if asked is not None:
            return done >= asked
        return is_steady([step.length / 1e9 for step in self._session.tally.kept])

    def _plan(self, done: int) -> Schedule:
        request, tally = self._session.request, self._session.tally
        # Other ranks are at most a step behind when they read it.
        begin = done + (2 if ranks.several() else 0)
        left_s = None
        if request.limit_s is not None:
            left_s = request.limit_s - sum(step.length for step in tally.kept) / 1e9
        step_s = tally.kept[-1].length / 1e9
        return plan(begin, step_s, self._epoch(), request.timed, request.active, left_s)

    def _epoch(self) -> int | None:
        """Return the steps of an epoch, by the DataLoader that gave most batches, or None."""
        tally = self._session.tally
        totals: dict[int, int] = {}
        for step in tally.kept:
            for loader, batches in step.batches.items():
                totals[loader] = totals.get(loader, 0) + batches
        if not totals:
            return None
        main = max(totals, key=lambda key: totals[key])
        if totals[main] < tally.count:  # steps that read no batch have other epochs, if any
            return None
        built = [item for item in self._session.builds["loaders"] if item["id"] == main and item["batches"]]
        each = max(1, round(totals[main] / tally.count))
        return max(1, built[-1]["batches"] // each) if built else None

    def _begin_timing(self, done: int) -> None:
        synchronize(self.device)
        _reset_peaks(self.device)
        self.phase, self.timed_from = TIMED, done
        self.timed_began = time.monotonic()
        self._mark()

    def _timing(self) -> bool:
        done = self._session.tally.count
        self._mark()
        if self.recording:  # by the script's own profiler: this step has paid for it
            return self._interrupted(done - 1)
        if self.schedule is None or done < self.schedule.window:
            return False
        self._end_timing(done)
        if self.own_profiler:
            self.phase = DONE
        else:
            self._begin_window(self.schedule.end - self.schedule.window - PROFILER_WARMUP)
        return True

    def _interrupted(self, done: int) -> bool:
        """End the timed part before the script's own profiler records; too few steps are timed again after it."""
        if done - self.timed_from < _TIMED_ENOUGH:
            self.phase, self.schedule, self.marks = WARMUP, None, []
            return False
        self._end_timing(done)
        self.phase = DONE
        return True

    def _end_timing(self, done: int) -> None:
        synchronize(self.device)
        tally = self._session.tally
        if self.timed_from < done == tally.count <= len(tally.kept):
            # Work that the device still had belongs to the steps that gave it: the last one waits for it.
            tally.kept[done - 1].ended = time.perf_counter_ns()
        self.timed_to, self.timed_ended = done, time.monotonic()
        self.peaks = _peaks(self.device)

    def _begin_window(self, active: int) -> None:
        if self.inherited:
            self.phase, self.stopped_by = DONE, "a child of a process that was profiled cannot be profiled"
            return self._write()
        self.profiled = True
        self.window = Window(self._session.request, active)
        try:
            self.window.begin()
        except Exception as error:
            self.window, self.phase = None, DONE
            self.stopped_by = f"the profiler did not start: {error}"
        else:
            self.phase = WINDOW
            self.window.first_step = self._session.tally.count + PROFILER_WARMUP
            self._active = active
        return self._write()

    def _recording(self) -> bool:
        if self.window is None:
            return False
        self.window.step()
        if self.window.recorded < self._active:
            return True
        self._close_window()
        if self._session.request.stop_after:
            self._end_script()
        return True

    def _close_window(self) -> None:
        window, folder = self.window, self._session.folder
        if window is None or folder is None:
            return
        synchronize(self.device)
        window.end()
        self.phase = DONE
        self.windows += 1
        name = "trace.json" if self.windows == 1 else f"trace.{self.windows}.json"
        if window.export(folder.path(name)):
            self.trace = name
        self.finished, self.window = window, None
        self._write()

    def _watched(self, step: Step) -> bool:
        folder = self._session.folder
        if folder is None:
            return False
        folder.stream(step, lambda: _allocated(self.device))
        if self.window is not None:
            return self._recording()
        active = folder.called(self._session.tally.count)
        if active and not self.own_profiler:
            self._begin_window(active)
            return True
        return False

    def _mark(self) -> None:
        mark = device_mark(self.device)
        if mark is not None:
            self.marks.append((self._session.tally.count, mark))

    def _write(self) -> None:
        if self._session.folder is not None:
            self._session.folder.write_record(self._session, ended=False)

    def make_way(self) -> None:
        """Leave the profiler to the script, which has started one of its own."""
        if self.window is not None:
            self.give_up()
            self.stopped_by = "the script's own profiler"
        self.own_profiler = self.profiled = True

    def give_up(self) -> None:
        """Measure no more."""
        window, self.window, self.phase = self.window, None, DONE
        if window is not None:
            with suppress(Exception):  # it was given up because something is wrong with it
                window.end()

    def finish(self) -> None:
        """Close what is open at the end of the script, and keep what there is."""
        if self.phase == TIMED:
            self._end_timing(self._session.tally.count)
            self.stopped_by = self.stopped_by or "the end of the script"
        if self.phase == WARMUP:
            self.stopped_by = self.stopped_by or "the end of the script"
        if self.phase == WINDOW and self.window is not None:
            self.stopped_by = "the end of the script"
            self._close_window()

    def _end_script(self) -> None:
        """End the script from inside, as sys.exit does; where that is caught again and again, end the process."""
        self.ending += 1
        if self.ending > 3:
            self._session.close()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
        raise SystemExit(0)


def _reset_peaks(device: Any) -> None:
    if device is not None and device.type == "cuda":
        import torch

        torch.cuda.reset_peak_memory_stats(device)


def _peaks(device: Any) -> dict[str, int | None]:
    """Return the memory peaks of the device since they were forgotten."""
    if device is None or device.type != "cuda":
        return {"peak_allocated_bytes": None, "peak_reserved_bytes": None}
    import torch

    return {
        "peak_allocated_bytes": torch.cuda.max_memory_allocated(device),
        "peak_reserved_bytes": torch.cuda.max_memory_reserved(device),
    }


def _allocated(device: Any) -> int | None:
    """Return the bytes allocated on the device now, None on the host."""
    if device is None or device.type != "cuda":
        return None
    import torch

    return int(torch.cuda.memory_allocated(device))
