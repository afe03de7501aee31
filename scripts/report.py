"""Write the report of a study, one HTML file, from its comparison.json."""

from __future__ import annotations

import argparse
from pathlib import Path

from tracelock.program import run_program
from tracelock.report.html import write_report


def main() -> None:
    """Write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, required=True, metavar="DIR", help="results/<experiment>")
    parser.add_argument("--output", type=Path, metavar="FILE", help="the report (DIR/report.html)")
    given = parser.parse_args()
    write_report(given.results, given.output or given.results / "report.html")


if __name__ == "__main__":
    run_program(main)
