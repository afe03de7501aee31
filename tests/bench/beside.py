"""What a script pays for being profiled (in its steps without the profiler) and for being watched.

The same loop runs alone, below `tracelock watch` and below `tracelock profile`, in turns, and times itself. Ratios are
of one round, so that a machine that gets slower slows all three.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from tests.bench.options import Options

ROUNDS = int(os.environ.get("ROUNDS", "6"))
WARMUP, TIMED, ACTIVE = 50, 1000, 1
WIDTHS = (256, 2048)  # steps of about half a millisecond, and of several
LOOP = Path(__file__).with_name("beside_loop.py")
SCRIPTS = Path(__file__).parents[2] / "scripts"
HOW = ("alone", "watch", "profile")


def bench(options: Options) -> None:
    """Print a table of both, for short and for longer steps."""
    del options
    print("| | step alone | ratio of step times, median (least to largest) | processor time a step |")
    print("| --- | ---: | ---: | ---: |", flush=True)
    for width in WIDTHS:
        rounds = [_round(width, number) for number in range(ROUNDS)]
        alone = median(one["alone"]["step_us"] for one in rounds)
        for how in HOW[1:]:
            ratios = sorted(one[how]["step_us"] / one["alone"]["step_us"] for one in rounds)
            more = median(one[how]["cpu_us"] - one["alone"]["cpu_us"] for one in rounds)
            span = f"{median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})"
            print(f"| {how} | {alone / 1000:.2f} ms | {span} | {more:+.1f} µs |", flush=True)


def _round(width: int, number: int) -> dict[str, dict[str, float]]:
    """Run the loop in each way once, in an order that changes from round to round."""
    order = [HOW[(number + place) % len(HOW)] for place in range(len(HOW))]
    return {how: _run(how, width) for how in order}


def _run(how: str, width: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        profile = ["profile", "-o", f"{folder}/run", "--warmup", WARMUP, "--timed", TIMED, "--active", ACTIVE]
        ways = {"alone": [], "watch": ["watch", "--plain"], "profile": profile}
        before = [sys.executable, "-m", "tracelock.cli", *map(str, ways[how]), "--"] if ways[how] else []
        # The loop times the steps that are timed below us.
        words = [sys.executable, str(LOOP), str(WARMUP + TIMED), str(WARMUP), str(width)]
        environment = {**os.environ, "PYTHONPATH": str(SCRIPTS)}
        done = subprocess.run(
            [*before, *words], cwd=folder, env=environment, capture_output=True, text=True, check=True
        )
        return dict(json.loads(done.stdout))
