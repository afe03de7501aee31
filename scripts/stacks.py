"""Plan one recording more of the baseline, with Python stacks, where its main finding names no line."""

from __future__ import annotations

import argparse
from pathlib import Path

from tracelock.program import run_program
from tracelock.study.with_stacks import plan_stacks


def main() -> None:
    """Write ``stacks/plan.json`` and the spec of its run, if it has one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, required=True, help="folder of the study's results")
    plan_stacks(parser.parse_args().results)


if __name__ == "__main__":
    run_program(main)
