"""Faults as real runs: two on this CPU with their control, and those of a GPU where there is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracelock.faults.grade import Answer, grade
from tracelock.faults.real import HEALTHY, ON_GPU, REAL, Bench, answers_on_gpu, graded


def shown(answers: list[Answer]) -> str:
    return "\n".join(f"{each.family}: {each.found}, cost {each.cost:.2f}, cured {each.cured}" for each in answers)


@pytest.mark.slow
def test_real_faults_are_named_and_the_proposed_settings_cure(tmp_path: Path) -> None:
    chosen = [fault for fault in REAL if fault.name in ("loading in the main process", "leak")]
    answers = list(graded(Bench(tmp_path), chosen, HEALTHY[-1:]))
    assert grade(answers) == {"main_cause_right": 1.0, "false_alarms": 0.0, "cure_named": 1.0}, shown(answers)


@pytest.mark.slow
def test_the_faults_of_a_gpu_can_be_built_without_one(tmp_path: Path) -> None:
    fault = next(fault for fault in ON_GPU if fault.settings.get("fault") == "item")
    small = {**fault.settings, "width": 64, "batch_size": 8, "samples": 64, "layers": 2, "num_workers": 0}
    diagnosed, sample_us = Bench(tmp_path).measure({**small, "persistent_workers": False})
    assert sample_us > 0
    assert diagnosed.step.count == 6


@pytest.mark.gpu
@pytest.mark.slow
def test_faults_on_a_gpu(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    answers = list(answers_on_gpu(tmp_path))
    print(shown(answers))
    found = grade(answers)
    assert (found["main_cause_right"] or 0.0) >= 0.95, shown(answers)
    assert (found["false_alarms"] or 0.0) <= 0.02, shown(answers)
