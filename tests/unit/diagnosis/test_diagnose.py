"""What holds for every diagnosis: nothing found is said, order, confidence."""

from __future__ import annotations

import pytest
from unit.diagnosis.cases import analysis, breakdown, gpu

from tracelock.analysis.document import decode, encode
from tracelock.diagnosis import Diagnosed, diagnose


def test_a_busy_device_is_said_to_be_compute_bound_with_its_numbers() -> None:
    diagnosed = diagnose(analysis(breakdown(kernel=960.0, other=40.0), gpus=(gpu(3840.0, 4000.0),)))
    (only,) = diagnosed.findings
    assert (only.code, only.severity, only.gain_at_most, only.remedies) == ("no-bottleneck", "info", None, ())
    assert "compute-bound" in only.title
    assert only.evidence[0].value == pytest.approx(0.96)


def test_a_cpu_trace_without_a_cause_says_what_works() -> None:
    (only,) = diagnose(analysis(breakdown(cpu_op=900.0, other=100.0))).findings
    assert only.title == "No bottleneck found: operators work 90.0 % of the step (compute-bound on the CPU)"


@pytest.mark.parametrize(
    ("steps", "quality", "confidence"), [(3, "complete", "high"), (2, "complete", "medium"), (9, "salvaged", "low")]
)
def test_confidence_follows_steps_and_quality(steps: int, quality: str, confidence: str) -> None:
    traced = analysis(breakdown(dataloader=500.0, cpu_op=500.0), steps=steps, quality=quality)
    assert diagnose(traced).findings[0].confidence == confidence


def test_a_diagnosis_survives_its_document() -> None:
    diagnosed = diagnose(analysis(breakdown(dataloader=500.0, cpu_op=500.0)), {"num_workers": 0})
    assert decode(encode(diagnosed), Diagnosed) == diagnosed
