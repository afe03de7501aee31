"""Draw every figure of a study, as SVG and PNG, from its comparison.json."""

from __future__ import annotations

import argparse
from pathlib import Path

from tracelock.program import run_program
from tracelock.report.figures import write_figures
from tracelock.study import comparison


def main() -> None:
    """Write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, required=True, metavar="DIR", help="results/<experiment>")
    parser.add_argument("--output", type=Path, metavar="DIR", help="folder of the figures (DIR/figures)")
    given = parser.parse_args()
    found = comparison.read(given.results / "comparison.json")
    write_figures(found, given.output or given.results / "figures")


if __name__ == "__main__":
    run_program(main)
