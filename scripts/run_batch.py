"""Make a batch of runs, one after the other, each in a process of its own: what one job of a batch system does.

Runs inside the environment that is measured: Python 3.10 or newer, the standard library and torch.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tracelock.errors import TracelockError
from tracelock.runner.batch import Batch, work_through
from tracelock.runner.process import Stopped, say


def main() -> int:
    """Return 0, 1 where runs failed, 2 for bad input, or 128 and the number of the signal that ended it."""
    given = _arguments()
    batch = Batch(
        given.plan, given.environment, given.orders, given.check, given.program, given.code, attempt=given.attempt
    )
    try:
        work_through(batch, given.output, _tell)
    except TracelockError as error:
        for problem in error.problems:
            say(f"run_batch: error: {problem}", sys.stderr)
        return error.exit_code
    except Stopped as stopped:
        say(f"run_batch: {stopped}", sys.stderr)
        return 128 + stopped.number
    return 0


def _tell(message: str) -> None:
    say(f"{time.strftime('%H:%M:%S')} {message}", sys.stderr)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plan", type=Path, required=True, help="plan.json of the study or of a round")
    parser.add_argument("--environment", required=True, help="the environment whose runs are made")
    parser.add_argument("--orders", type=_span, metavar="A-B", help="places in the plan's order; without it all")
    parser.add_argument("--check", type=Path, required=True, help="check.json of the environment this must still be")
    parser.add_argument("--code", default="", help="digest of the programs; a run made by others is made again")
    parser.add_argument("--attempt", type=int, default=1, help="counts the tries of this batch")
    parser.add_argument("--output", type=Path, required=True, help="file that says what became of each run")
    default = Path(__file__).with_name("run_workload.py")
    parser.add_argument("--program", type=Path, default=default, help=argparse.SUPPRESS)
    return parser.parse_args()


def _span(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    return int(first), int(last)


if __name__ == "__main__":
    sys.exit(main())
