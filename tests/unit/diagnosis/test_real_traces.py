"""The verdicts of docs/verdicts.md on real traces, each with the figure that it rests on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracelock.analysis.analyze import analyze
from tracelock.diagnosis import Diagnosed, diagnose
from tracelock.trace import read_trace


def verdict(shared: Path, name: str) -> Diagnosed:
    return diagnose(analyze(read_trace(shared / "traces" / f"{name}.json.gz")))


@pytest.mark.parametrize(
    ("name", "codes", "confidence"),
    [
        ("kineto-resnet50-workers0", ["dataloader-bound"], "high"),
        ("kineto-resnet50-workers4", ["launch-bound"], "high"),
        ("hta-ns-resolution", ["matmul-precision"], "high"),
        ("hta-nccl", ["launch-bound"], "high"),
        ("hta-cpu-only", ["communication-exposed"], "high"),
        ("hta-mi250-train", ["launch-bound"], "medium"),
        ("tracelens-mi300-resnet-checkpoint", ["communication-exposed", "unused-work"], "medium"),
        ("tracelens-mi300-vit", ["launch-bound"], "medium"),
        ("tracelens-h100-bert", ["launch-bound"], "medium"),
        ("tutorial-h100-transformer", ["launch-bound"], "high"),
        ("dlrm-rank0", ["launch-bound", "synchronization", "dataloader-bound", "communication-exposed"], "medium"),
        ("dlrm-rank1", ["communication-exposed"], "medium"),
        ("switch-a100", ["synchronization"], "low"),
        ("tracelens-h100-qwen", ["no-bottleneck"], "medium"),
        ("tracelens-compile-triton", ["no-bottleneck"], "low"),
        ("tracelens-vllm-hipgraph", ["no-bottleneck"], "low"),
        ("tracelens-mi210-gpu-only", ["no-bottleneck"], "low"),
        ("hta-alexnet", ["no-bottleneck"], "low"),
        ("hta-event-sync", ["no-bottleneck"], "low"),
        ("zoology-cpu-int", ["no-bottleneck"], "low"),
        ("perfetto-flow-v1", ["no-bottleneck"], "low"),
    ],
)
def test_verdicts(shared: Path, name: str, codes: list[str], confidence: str) -> None:
    found = verdict(shared, name)
    assert [finding.code for finding in found.findings] == codes
    assert found.findings[0].confidence == confidence


def test_loading_in_the_main_process_of_the_plugins_sample(shared: Path) -> None:
    main = verdict(shared, "kineto-resnet50-workers0").findings[0]
    assert main.share_of_step == pytest.approx(59_262 / 177_592, abs=1e-4)  # the plugin's own figures
    assert "59,262 µs of 177,592 µs" in main.evidence[0].text
    assert main.remedies[0].settings == {"num_workers": 4, "persistent_workers": True, "pin_memory": True}
    # The same job with four workers takes 141,068 µs: what was gained lies within the bound.
    assert 1 - 141_068 / 177_592 <= main.gain_at_most <= 0.45


def test_four_workers_removed_the_cause(shared: Path) -> None:
    found = verdict(shared, "kineto-resnet50-workers4")
    assert found.step.dataloader_share == pytest.approx(0.008, abs=1e-3)
    assert "dataloader-bound" not in [finding.code for finding in found.findings]


def test_code_advice_names_the_users_line_where_stacks_were_recorded(shared: Path) -> None:
    found = verdict(shared, "switch-a100")
    advice = [remedy.code for finding in found.findings for remedy in finding.remedies]
    assert advice[0].startswith("aten::is_nonzero at switch_transformers/model.py(143): forward: ")
