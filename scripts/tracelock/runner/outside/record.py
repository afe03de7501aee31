"""What a process writes: its facts at the first step, a count of its steps, and the record at the end of each part."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from . import ranks, settings
from .cores import in_us
from .losses import first_losses
from .tally import Step

if TYPE_CHECKING:
    from .session import Session

FACTS, COUNT, RECORD, STREAM, CALL = "facts.json", "count", "record.json", "steps.jsonl", "call.json"
STREAM_NS = 500_000_000


class Folder:
    """The folder of one process, named by its process id."""

    def __init__(self, parent: str) -> None:
        self._folder = os.path.join(parent, str(os.getpid()))
        os.makedirs(self._folder, exist_ok=True)
        self._count = os.open(self.path(COUNT), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        self._stream: int | None = None
        self._waiting: list[Step] = []
        self._written = 0
        self._facts: dict[str, Any] = {}

    def path(self, name: str) -> str:
        """Return the path of a file of this process."""
        return os.path.join(self._folder, name)

    def count(self, steps: int) -> None:
        """Note the number of steps where even a kill leaves it."""
        os.pwrite(self._count, b"%d" % steps, 0)

    def stream(self, step: Step, allocated: Callable[[], int | None]) -> None:
        """Append a step to the stream, which is written twice a second, and not worked on between."""
        self._waiting.append(step)
        if step.ended - self._written >= STREAM_NS:
            self._written = step.ended
            self.flush(allocated())

    def flush(self, allocated: int | None) -> None:
        """Write the steps that wait; `allocated` are the bytes on the device now, which the last one tells."""
        if self._stream is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._stream = os.open(self.path(STREAM), flags, 0o666)
        last = self._waiting[-1]
        self.count(last.number + 1)
        os.write(
            self._stream, "".join(_line(each, allocated if each is last else None) for each in self._waiting).encode()
        )
        self._waiting = []

    def called(self, steps: int) -> int | None:
        """Return how many steps to record now, where somebody has called for a window, else None."""
        if self._waiting:
            return None  # looked at as often as the stream is written
        try:
            with open(self.path(CALL), encoding="utf-8") as stream:
                call = json.load(stream)
        except (OSError, ValueError):
            return None
        if steps < call["step"]:
            return None
        os.unlink(self.path(CALL))
        return int(call["active"])

    def write_facts(self, session: Session) -> None:
        """Say which process this is."""
        self._facts = process_facts()  # at the end, the process group is gone
        self._write(FACTS, {**self._facts, "device": settings.device_facts(session.director.device)})

    def write_record(self, session: Session, ended: bool) -> None:
        """Write everything that is known so far."""
        if session.request.watch and self._waiting:
            self.flush(None)
        self._write(RECORD, {**self._facts, **document(session), "ended": ended})

    def _write(self, name: str, value: dict[str, Any]) -> None:
        temporary = self.path(f".{name}")
        with open(temporary, "w", encoding="utf-8") as stream:
            json.dump(value, stream)
        os.replace(temporary, self.path(name))


def _line(step: Step, allocated: int | None) -> str:
    """Return a step of the stream as JSON; microseconds."""
    samples, size = ("null" if value is None else value for value in (step.samples, allocated))
    return (
        f'{{"step":{step.number},"end_s":{step.ended / 1e9:.6f},"us":{step.length / 1000:.1f},'
        f'"loading_us":{(step.loading + step.starting) / 1000:.1f},"samples":{samples},"allocated_bytes":{size}}}\n'
    )


def process_facts() -> dict[str, Any]:
    """Return what tells this process from the others."""
    import torch

    return {
        "schema": "tracelock/outside/1",
        "pid": os.getpid(),
        "parent": os.getppid(),
        "argv": [str(word) for word in sys.argv],
        "folder": os.getcwd(),
        "python": platform.python_version(),
        "executable": sys.executable,
        "torch": torch.__version__,
        "rank": ranks.rank(),
        "local_rank": ranks.local_rank(),
        "world_size": ranks.world_size(),
    }


def document(session: Session) -> dict[str, Any]:
    """Return what was measured; times in microseconds."""
    director, tally = session.director, session.tally
    timed = tally.kept[director.timed_from : director.timed_to]
    return {
        "source": session.source,
        "steps": tally.count,
        "skipped": tally.skipped,
        "warmup": _series(tally.kept[: director.timed_from]) if director.timed_from else _series(tally.kept),
        "timed": {
            **_series(timed),
            "began_s": director.timed_began,
            "ended_s": director.timed_ended,
            "device_step_us": _device_us(director),
        },
        "window": _window(session),
        "schedule": director.schedule.plain() if director.schedule else None,
        "stopped_by": director.stopped_by,
        "own_profiler": director.own_profiler,
        "device": settings.device_facts(director.device),
        "memory": director.peaks,
        "losses": first_losses(session),
        "builds": session.builds,
        "changes": list(session.changes.values()),
        "settings": settings.in_force(session),
        "notes": session.notes,
        "written_s": time.monotonic(),
    }


def _series(steps: list[Step]) -> dict[str, Any]:
    return {
        "steps": len(steps),
        "step_us": [step.length / 1000 for step in steps],
        "loading_us": [(step.loading + step.starting) / 1000 for step in steps],
        "queued_us": in_us([step.queued for step in steps]),
        "epoch_starts": [number for number, step in enumerate(steps) if step.starting],
        "samples": [step.samples for step in steps],
        "batches": [{str(loader): count for loader, count in step.batches.items()} for step in steps],
        "skipped": [number for number, step in enumerate(steps) if step.skipped],
    }


def _device_us(director: Any) -> list[float] | None:
    """Return the device's own time between the ends of timed steps, or None without one."""
    marks = [mark for count, mark in director.marks if count <= director.timed_to]
    pairs = list(pairwise(marks))
    return [began.elapsed_time(ended) * 1000 for began, ended in pairs] if pairs and director.timed_to else None


def _window(session: Session) -> dict[str, Any]:
    director = session.director
    window = director.finished
    if window is None:
        return {"steps": 0, "step_us": [], "before_forward_us": [], "loading_us": [], "trace": director.trace}
    first = window.first_step
    steps = session.tally.kept[first : first + window.recorded]
    before = [value / 1000 for value in window.labels.before_forward_ns[-window.recorded :]] if window.recorded else []
    return {
        "steps": window.recorded,
        "first": first,
        "step_us": [step.length / 1000 for step in steps],
        "loading_us": [(step.loading + step.starting) / 1000 for step in steps],
        "queued_us": in_us([step.queued for step in steps]),
        "before_forward_us": before,
        "trace": director.trace,
        "began_s": window.began,
        "ended_s": window.ended,
    }
