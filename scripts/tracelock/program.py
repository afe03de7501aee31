"""Run one of the programs in scripts/: a failure is one clear line and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from tracelock.errors import TracelockError


def run_program(main: Callable[[], None]) -> None:
    """Call `main`; report a TracelockError without a traceback (TRACELOCK_DEBUG=1 shows it)."""
    try:
        main()
    except TracelockError as error:
        if os.environ.get("TRACELOCK_DEBUG"):
            raise
        for problem in error.problems:
            print(f"tracelock: error: {problem}", file=sys.stderr)
        sys.exit(error.exit_code)
