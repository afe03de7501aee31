"""How often the diagnosis is right: on simulated faults, beside the rules that others publish, and on real ones."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.bench.measure import peers
from tests.bench.options import Options

SEEDS = "20000:20005"  # a quarter of those in docs/measurements.md


def bench(_: Options) -> None:
    """Print the confusion matrix, the grade, the table of peers, and the same of real runs."""
    from tracelock.cli._faults import Request, run

    with tempfile.TemporaryDirectory(prefix="tracelock-faults-") as folder:
        run(Request(SEEDS, (), Path(folder), True, peers().with_name("gpu-idle"), 2, False))
