"""Samples machine, processes and GPU in a thread beside the timed steps, and writes samples.csv."""

from __future__ import annotations

import csv
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from tracelock.runner.probes import Probe, Value

INTERVAL_S = 0.25


class Sampler:
    """A context during which the probes are read four times a second.

    Each row begins with the seconds since the start of the context. ``cpu_s`` is the CPU time that sampling
    itself took, so that its effect on the timed steps can be judged.
    """

    def __init__(self, probes: Sequence[Probe], interval_s: float = INTERVAL_S) -> None:
        self._probes = probes
        self._interval_s = interval_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tracelock-sampler", daemon=True)
        self.columns = ["time_s", *(column for probe in probes for column in probe.columns)]
        self.rows: list[list[Value]] = []
        self.cpu_s = 0.0

    def __enter__(self) -> Sampler:
        self._started = time.perf_counter()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()
        for probe in self._probes:
            probe.close()

    def write(self, path: Path) -> None:
        """Write all samples; a value that is not known is an empty cell."""
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(self.columns)
            writer.writerows(["" if value is None else value for value in row] for row in self.rows)

    def peak_bytes(self) -> int | None:
        """Return the largest sum of resident memory over this process and those below it, or None."""
        own, below = (self.columns.index(name) for name in ("rss_bytes", "children_rss_bytes"))
        sums = [
            int(str(row[own])) + sum(map(int, str(row[below]).split())) for row in self.rows if row[own] is not None
        ]
        return max(sums, default=None)

    def _run(self) -> None:
        while not self._over.wait(self._interval_s):
            self._sample()
        self._sample()

    def _sample(self) -> None:
        at = time.perf_counter() - self._started
        self.rows.append([round(at, 4), *(value for probe in self._probes for value in probe.read())])
        self.cpu_s = time.thread_time()
