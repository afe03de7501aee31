"""Compare the variants of a study: writes comparison.json and tables/*.csv into its results folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from tracelock.io import write_text
from tracelock.program import run_program
from tracelock.study import comparison
from tracelock.study.compare import compare
from tracelock.study.stats import MIN_EFFECT
from tracelock.study.tables import document_tables, write_tables


def main() -> None:
    """Write comparison.json last: a folder that holds it holds whole tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--results", type=Path, metavar="DIR", help="results/<experiment>")
    what.add_argument("--document-tables", type=Path, metavar="FILE", help="write docs/tables.md and nothing else")
    parser.add_argument(
        "--min-effect",
        type=float,
        default=MIN_EFFECT,
        metavar="SHARE",
        help="smallest difference that counts (%(default)s)",
    )
    given = parser.parse_args()
    if given.document_tables:
        write_text(given.document_tables, document_tables())
        return
    found = compare(given.results, given.min_effect)
    write_tables(found, given.results / "tables")
    comparison.write(given.results / "comparison.json", found)


if __name__ == "__main__":
    run_program(main)
