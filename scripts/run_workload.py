"""Make one run of a workload: spec.json -> run.json, samples.csv, trace.json.gz and log.txt.

Runs inside the environment that is measured: Python 3.10 or newer, the standard library and torch.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tracelock.errors import TracelockError
from tracelock.runner.process import Stopped, say
from tracelock.runner.run import Request
from tracelock.runner.supervise import supervise


def main() -> int:
    """Return 0, 1 for a failed run, 2 for bad input, or 128 and the number of the signal that ended it."""
    try:
        print(supervise(_request()))
    except TracelockError as error:
        for problem in error.problems:
            say(f"run_workload: error: {problem}", sys.stderr)
        return error.exit_code
    except Stopped as stopped:
        say(f"run_workload: {stopped}", sys.stderr)
        return 128 + stopped.number
    return 0


def _request() -> Request:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spec", type=Path, required=True, help="spec.json: what to run")
    parser.add_argument("--repeat", type=int, required=True, metavar="N", help="number of this repeat")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder for the files of the run")
    parser.add_argument("--token", metavar="T", help="name of this attempt; the newest attempt publishes")
    parser.add_argument("--check", type=Path, metavar="FILE", help="check.json of the environment this must still be")
    parser.add_argument(
        "--tensorboard", action="store_true", help="give the trace also the name *.pt.trace.json.gz for TensorBoard"
    )
    return Request(**vars(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
