"""2,000 finished runs, 200 variants of 10: comparison, figures and report, as the workflow starts them."""

from __future__ import annotations

import itertools
import sys
import tempfile
from pathlib import Path

from tests.bench.measure import ROOT, Measured, mib, run
from tests.bench.options import Options

REPEATS = 10


def bench(options: Options) -> None:
    """Measure the three programs one after the other, and print size of what they wrote."""
    del options
    sys.path.insert(0, str(ROOT / "tests"))
    from study_tree import StudyTree, Variant

    grid = itertools.product((8, 16, 32, 64, 128), range(8), range(1, 6))
    variants = [
        Variant(
            {"batch_size": batch, "num_workers": workers, "prefetch_factor": ahead},
            step_us=100_000 * (1 + 0.3 / (1 + workers)) * batch / 32,
            loading=0.4 / (1 + workers),
            samples_per_step=batch,
        )
        for batch, workers, ahead in grid
    ]
    with tempfile.TemporaryDirectory() as place:
        folder = StudyTree(variants, repeats=REPEATS).write(Path(place, "demo"))
        print(f"{len(variants)} variants × {REPEATS} runs\n")
        print("| program | by the clock | CPU time | peak memory |\n| --- | --- | --- | --- |")
        parts = [_part(name, folder) for name in ("compare", "figures", "report")]
        wall, cpu = sum(part.wall_s for part in parts), sum(part.cpu_s for part in parts)
        print(f"| all | {wall:.1f} s | {cpu:.1f} s | {mib(max(part.peak_bytes for part in parts))} |")
        print(f"\nreport.html: {(folder / 'report.html').stat().st_size / 1e6:.1f} MB")


def _part(name: str, folder: Path) -> Measured:
    part = run(name, [sys.executable, str(ROOT / "scripts" / f"{name}.py"), "--results", str(folder)])
    print(f"| {name} | {part.wall_s:.1f} s | {part.cpu_s:.1f} s | {mib(part.peak_bytes)} |", flush=True)
    return part
