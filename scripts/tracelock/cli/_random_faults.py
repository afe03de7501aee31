"""The work of ``tracelock faults --real DIR --random N``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tracelock.errors import Problem, TracelockError
from tracelock.faults.composed.collection import Said, document, grade, said


def run(folder: Path | None, count: int, seed: int, as_json: bool) -> None:
    """Measure `count` composed workloads below `folder`, and print how right the diagnosis is.

    Raises
    ------
    TracelockError
        If there is no folder.
    """
    if folder is None:
        raise TracelockError(
            Problem("--random", "needs a folder for its runs", f"--real results/faults --random {count}")
        )
    seeds = range(seed, seed + count)
    cases = list(said(folder, seeds, lambda line: print(line, file=sys.stderr, flush=True)))
    if as_json:
        print(json.dumps(document(seeds, cases), ensure_ascii=False, allow_nan=False))
    else:
        _show(cases)


def _show(cases: list[Said]) -> None:
    for name, value in grade(cases).items():
        shown = "not known" if value is None else f"{value:.1%}" if isinstance(value, float) else f"{value:,}"
        print(f"{name.replace('_', ' '):24} {shown}")
