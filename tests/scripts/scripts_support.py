"""Runs a case script alone and below us, and reads what the processes wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracelock.runner.command.collect import Process, processes
from tracelock.runner.command.launch import launch, request_for, scratch
from tracelock.runner.command.watching import Watcher

CASES = Path(__file__).parent / "cases"


@dataclass
class Seen:
    """A case below us: how it ended, what it printed, its own clock, what was recorded of it."""

    exit_code: int
    output: str
    own: dict[str, Any]
    found: list[Process]
    traces: dict[int, dict[str, Any]]

    @property
    def record(self) -> dict[str, Any]:
        return self.found[0].record

    def labels(self, place: int = 0) -> set[str]:
        """Return the names of the labels in a trace."""
        events = self.traces[place]["traceEvents"]
        return {event["name"] for event in events if event.get("cat") == "user_annotation"}

    def marked_steps(self, place: int = 0) -> int:
        return sum(name.startswith("ProfilerStep#") for name in self.labels(place))


def run_case(folder: Path, *words: str, launcher: list[str] | None = None, **options: Any) -> Seen:
    """Run a case below us: the words after its launcher, which is Python itself."""
    command = [*(launcher or [sys.executable]), *words]
    clock, log = folder / "clock.json", folder / "output.txt"
    more = {"OWN_CLOCK": str(clock), "PYTHON": sys.executable, "OMP_NUM_THREADS": "1"}
    late = time.monotonic() + 200
    with scratch(folder) as place, log.open("wb") as stream:
        watcher, before = Watcher(place), Path.cwd()
        os.chdir(CASES)
        try:
            code = launch(
                command,
                request_for(place, **options),
                watcher,
                stdout=stream.fileno(),
                more=more,
                overdue=lambda: time.monotonic() > late,
            )
        finally:
            os.chdir(before)
        found = processes(place, watcher.processes)
        traces = {number: trace for number, each in enumerate(found) if (trace := _trace(each))}
    own = json.loads(clock.read_text()) if clock.is_file() else {}
    return Seen(code, log.read_text(), own, found, traces)


def _trace(process: Process) -> dict[str, Any] | None:
    name = process.record.get("window", {}).get("trace")
    return json.loads((process.folder / name).read_text()) if name else None


def run_alone(*words: str, launcher: list[str] | None = None) -> tuple[int, str]:
    """Run a case without us; return its exit code and what it printed."""
    command = [*(launcher or [sys.executable]), *words]
    environment = {**os.environ, "PYTHON": sys.executable, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=CASES, capture_output=True, text=True, check=False, env=environment)
    return done.returncode, done.stdout
