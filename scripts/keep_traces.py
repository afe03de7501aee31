"""Hold a study's traces to keep_traces and max_total_gb of its file: writes traces.json, what stayed and what went."""

from __future__ import annotations

import argparse
from pathlib import Path

from tracelock.program import run_program
from tracelock.study.traces import finish


def main() -> None:
    """Take away the traces that need not stay."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, required=True, metavar="DIR", help="results/<experiment>")
    finish(parser.parse_args().results)


if __name__ == "__main__":
    run_program(main)
