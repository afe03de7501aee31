"""A trace of 5 GB in bounded memory, its analysis included: ``python -m tests.bench large``. The file is taken away."""

from __future__ import annotations

import sys

from tests.bench.measure import ROOT, mib, run
from tests.bench.options import Options, generated

BY_NAME_ONLY = True
MEGABYTES = 5000.0


def bench(options: Options) -> None:
    """Generate the trace, analyse it, and print time and peak memory of the whole process."""
    path = options.trace or generated(MEGABYTES)
    try:
        command = [sys.executable, "-m", "tracelock.cli", "analyze", str(path), "--json"]
        measured = run("analyze", command, {"PYTHONPATH": str(ROOT / "scripts")})
        size = path.stat().st_size
        print(
            f"`tracelock analyze --json` of {size / 1e6:.0f} MB: {measured.wall_s:.0f} s, "
            f"{measured.cpu_s:.0f} CPU-seconds, peak memory {mib(measured.peak_bytes)}"
        )
    finally:
        if options.trace is None:
            path.unlink()
