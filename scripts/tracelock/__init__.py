"""tracelock: evidence for why a PyTorch training job is slow, that a colleague can repeat.

`read_trace`, `analyze`, `frames` and `load_study` are loaded when they are asked for, so that the command line starts
fast and the runner can import its part of the package where numpy is not installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracelock.analysis import analyze
    from tracelock.analysis.frames import frames
    from tracelock.study.frames import load_study
    from tracelock.trace import read_trace

__version__ = "0.1.0"

__all__ = ["__version__", "analyze", "frames", "load_study", "read_trace"]


def __getattr__(name: str) -> Any:
    if name == "analyze":
        from tracelock.analysis import analyze

        return analyze
    if name == "frames":
        from tracelock.analysis.frames import frames

        return frames
    if name == "load_study":
        from tracelock.study.frames import load_study

        return load_study
    if name == "read_trace":
        from tracelock.trace import read_trace

        return read_trace
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
