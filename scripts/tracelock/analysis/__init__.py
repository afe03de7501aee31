"""Figures: numpy arrays in, dataclasses out."""

from tracelock.analysis.analyze import analyze
from tracelock.analysis.model import Analysis

__all__ = ["Analysis", "analyze"]
