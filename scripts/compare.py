"""Compare the variants of a study: writes comparison.json and tables/*.csv into its results folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from tracelock.program import run_program
from tracelock.study import comparison
from tracelock.study.compare import compare
from tracelock.study.stats import MIN_EFFECT
from tracelock.study.tables import write_tables


def main() -> None:
    """Write comparison.json last: a folder that holds it holds whole tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, required=True, metavar="DIR", help="results/<experiment>")
    parser.add_argument(
        "--min-effect",
        type=float,
        default=MIN_EFFECT,
        metavar="SHARE",
        help="smallest difference that counts (%(default)s)",
    )
    given = parser.parse_args()
    found = compare(given.results, given.min_effect)
    write_tables(found, given.results / "tables")
    comparison.write(given.results / "comparison.json", found)


if __name__ == "__main__":
    run_program(main)
