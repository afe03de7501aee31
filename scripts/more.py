"""Plan a wave of further runs: disturbed ones once more, and others until intervals are as narrow as was asked."""

from __future__ import annotations

import argparse
from pathlib import Path

from tracelock.program import run_program
from tracelock.study.more import plan_more


def main() -> None:
    """Write ``more/<n>.json`` below the study's results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, required=True, help="folder of the study's results")
    parser.add_argument("--wave", type=int, required=True, help="number of the wave, from 1")
    arguments = parser.parse_args()
    plan_more(arguments.results, arguments.wave)


if __name__ == "__main__":
    run_program(main)
