"""A study of 30 short runs, disturbed at random moments: 200 faults, each followed by the command that it names."""

from __future__ import annotations

import os
import random
import tempfile
import time
from pathlib import Path

from tests.bench.options import Options
from tests.disturbed.campaign import Campaign

FAULTS = int(os.environ.get("FAULTS", "200"))


def bench(options: Options) -> None:
    """Disturb studies, and print what was done and what was wrong."""
    del options
    seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(10**6))
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        result = Campaign(Path(folder), FAULTS, seed, lambda line: print(line, flush=True)).run()
    minutes = (time.monotonic() - began) / 60
    print(f"\n{result.faults} faults in {result.studies} studies and {result.starts} starts, {minutes:.0f} min\n")
    print("| fault | times |\n| --- | --- |")
    for name, count in sorted(result.done.items()):
        print(f"| {name} | {count} |")
    print("\nwrong: " + ("; ".join(result.wrong) or "nothing"))
    if result.wrong:
        raise SystemExit(1)
