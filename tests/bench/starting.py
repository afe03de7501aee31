"""From the prompt to the answer: ``tracelock analyze`` of a trace of 1 MB, imports and all."""

from __future__ import annotations

import statistics
import sys

from tests.bench.measure import ROOT, mib, run
from tests.bench.options import Options, generated

REPEATS = 7


def bench(options: Options) -> None:
    """Measure the command several times and print the median."""
    path = generated(1)
    command = [sys.executable, "-m", "tracelock.cli", "analyze", str(path)]
    runs = [run("analyze", command, {"PYTHONPATH": str(ROOT / "scripts")}) for _ in range(REPEATS)]
    wall = [measured.wall_s for measured in runs]
    print(
        f"`tracelock analyze` of {path.stat().st_size / 1e6:.1f} MB: median {statistics.median(wall):.2f} s "
        f"of {REPEATS} ({min(wall):.2f} to {max(wall):.2f} s), {mib(max(measured.peak_bytes for measured in runs))}"
    )
