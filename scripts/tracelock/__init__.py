"""tracelock: evidence for why a PyTorch training job is slow, that a colleague can repeat.

`read_trace`, `analyze`, `frames` and `load_study` are loaded when they are asked for, so that the command line starts
fast and the runner can import its part of the package where numpy is not installed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracelock.analysis import analyze
    from tracelock.analysis.frames import frames
    from tracelock.study.frames import load_study
    from tracelock.trace import read_trace

__version__ = "0.1.0"

__all__ = ["__version__", "analyze", "frames", "load_study", "read_trace"]


# By name, not by import statements: nothing below may depend on what stands above it because of this page.
_FROM = {
    "analyze": "tracelock.analysis",
    "frames": "tracelock.analysis.frames",
    "load_study": "tracelock.study.frames",
    "read_trace": "tracelock.trace",
}


def __getattr__(name: str) -> Any:
    if name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_FROM[name]), name)
