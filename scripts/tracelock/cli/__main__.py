"""``python -m tracelock.cli``: the command where it is not installed."""

from tracelock.cli import main

main()
