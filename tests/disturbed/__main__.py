"""``python -m tests.disturbed --faults N --seed S``: disturb studies by hand."""

from __future__ import annotations

import argparse
import functools
import sys
import tempfile
from pathlib import Path

from tests.disturbed.campaign import Campaign


def main() -> int:
    """Return 0 if nothing was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.disturbed", description=__doc__)
    parser.add_argument("--faults", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = Campaign(Path(folder), arguments.faults, arguments.seed, functools.partial(print, flush=True)).run()
    print(f"{result.faults} faults in {result.studies} studies, {result.starts} starts")
    print("\n".join(result.wrong) or "nothing was wrong")
    return bool(result.wrong)


if __name__ == "__main__":
    sys.exit(main())
