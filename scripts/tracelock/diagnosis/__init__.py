"""Rules over an analysis: findings and their remedies."""

from __future__ import annotations

from tracelock.diagnosis.diagnose import diagnose
from tracelock.diagnosis.model import Diagnosed, Evidence, Finding, Remedy
from tracelock.diagnosis.thresholds import Thresholds, read_thresholds

__all__ = ["Diagnosed", "Evidence", "Finding", "Remedy", "Thresholds", "diagnose", "read_thresholds"]
