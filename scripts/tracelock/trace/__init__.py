"""Reader: any Kineto JSON becomes columns; nothing here knows what a step is."""

from tracelock.trace.columns import Trace
from tracelock.trace.reader import read_trace, release

__all__ = ["Trace", "read_trace", "release"]
