"""Sum up the rounds of remedies: what each one brought, and the path from the baseline to the best."""

from __future__ import annotations

import argparse
from pathlib import Path

from tracelock.io import write_json
from tracelock.program import run_program
from tracelock.study.remedies import remedies_document


def main() -> None:
    """Write ``remedies.json``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, required=True, help="folder of the study's results")
    parser.add_argument("--rounds", type=int, required=True, help="how many rounds were planned")
    parser.add_argument("--output", type=Path, required=True, help="the file to write")
    arguments = parser.parse_args()
    write_json(arguments.output, remedies_document(arguments.results, arguments.rounds))


if __name__ == "__main__":
    run_program(main)
