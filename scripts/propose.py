"""Plan a round of remedies: what the diagnosis proposes for the best variant so far becomes runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from tracelock.program import run_program
from tracelock.study.rounds import plan_round


def main() -> None:
    """Write plan.json, round.json and the specs of the round below ``rounds/<n>/``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, required=True, help="folder of the study's results")
    parser.add_argument("--round", type=int, required=True, help="number of the round, from 1")
    arguments = parser.parse_args()
    plan_round(arguments.results, arguments.round)


if __name__ == "__main__":
    run_program(main)
