"""What the warnings of a trace forbid a diagnosis to say."""

from __future__ import annotations

from typing import Final

from tracelock.diagnosis.case import Case

# Of these nothing is concluded: the rows are another tool's, their clocks are not one, or they are too few.
WITHHELD: Final = {
    "ascend-file": "the file is of Ascend's profiler",
    "tensorflow-file": "the file is of JAX or TensorFlow",
    "chrome-file": "the file is of Chrome's own tracing",
    "unknown-origin": "the rows are of unknown origin",
    "clocks-unrelated": "host and device wrote times of different clocks",
    "too-little-to-judge": "the trace holds too little to judge anything by",
}
# These are read, and part of what happened is missing.
DOUBTFUL: Final = ("autograd-profiler", "no-device-rows", "many-batches-in-a-step")


def withheld(case: Case) -> str | None:
    """Return why no verdict is given, None where one may be."""
    return next((WITHHELD[warning.code] for warning in case.analysis.trace.warnings if warning.code in WITHHELD), None)


def is_doubtful(case: Case) -> bool:
    """Return whether no finding deserves more than low confidence."""
    codes = {warning.code for warning in case.analysis.trace.warnings}
    return not codes.isdisjoint(DOUBTFUL) or withheld(case) is not None
