"""Recordings of real loops with a fault of known cost: what is said of each, and that its bound holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tracelock.analysis.analyze import analyze
from tracelock.diagnosis import Diagnosed, diagnose
from tracelock.trace import read_trace

SLACK = 0.03  # of the step: profiled shares beside unprofiled truth


def told(shared: Path, name: str) -> Diagnosed:
    return diagnose(analyze(read_trace(shared / "faults" / f"{name}.json.gz")))


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("python_between_layers_300us", "python-time", "Python between the operators"),
        ("clones_20", "needless-copies", "clones"),
        ("per_sample_loss_loop", "frequent-operator", "aten::slice + aten::slice + aten::cross_entropy_loss"),
        ("adam_dense_big_embedding", "optimizer-bound", "every row of a table"),
        ("optimizer_one_by_one", "optimizer-bound", "one by one"),
    ],
)
def test_a_fault_is_named_and_its_bound_holds(shared: Path, name: str, code: str, words: str) -> None:
    found = told(shared, f"{name}.on.B").findings
    truth = json.loads((shared / "faults" / f"{name}.truth.json").read_text())
    assert [finding.code for finding in found] == [code]
    assert words in found[0].title
    assert found[0].gain_at_most >= truth["cost"] - SLACK


def test_a_loop_of_small_operators_is_bounded_by_what_it_costs(shared: Path) -> None:
    main = told(shared, "two_loader_gt_ops.off.B").findings[0]
    assert main.code == "frequent-operator"
    assert main.gain_at_most >= 0.30


def test_one_gap_of_the_machine_is_no_fault(shared: Path) -> None:
    codes = [finding.code for finding in told(shared, "lock_contention.off.B").findings]
    assert codes == ["no-bottleneck"]


def test_a_loader_of_a_twentieth_is_not_called_slow_collating(shared: Path) -> None:
    found = told(shared, "loader0.4.C").findings[0]
    assert found.code in ("dataloader-bound", "no-bottleneck")
    assert (found.gain_estimate or 0.0) <= 0.08
