"""Reader: any Kineto JSON becomes columns; nothing here knows what a step is."""

from tracelock.trace.cache import open_trace
from tracelock.trace.columns import Trace
from tracelock.trace.reader import read_trace, release

__all__ = ["Trace", "open_trace", "read_trace", "release"]
