"""Kernels of variants: medians per step over the traces that hold them, and names without what builds add."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from study_tree import StudyTree, Variant

from tracelock.study import comparison as document
from tracelock.study.compare import compare
from tracelock.study.comparison import Comparison


def kernel(name: str, calls: int, total: float) -> dict[str, Any]:
    return {"name": name, "calls": calls, "total_us": total, "mean_us": total / calls, "min_us": 1.0, "max_us": total}


def study_of(folder: Path, kernels: dict[str, list[list[dict[str, Any]]]]) -> Comparison:
    """Return a study whose runs' traces (three steps each) hold the kernels that are given by variant and repeat."""
    variants = [Variant({"n": 0}), Variant({"n": 1}, step_us=50_000.0)]
    StudyTree(variants, repeats=3, gpus=1).write(folder)
    for variant, repeats in kernels.items():
        for number, found in enumerate(repeats, start=1):
            file = folder / "runs" / "default" / variant / str(number) / "analysis.json"
            analysis = json.loads(file.read_text(encoding="utf-8"))
            file.write_text(json.dumps({**analysis, "kernels": found}), encoding="utf-8")
    return compare(folder)


def test_times_are_medians_per_step_over_the_traces_that_hold_a_kernel(tmp_path: Path) -> None:
    gemm = "triton_tem_fused_mm_0d1d2"
    study = study_of(
        tmp_path,
        {
            "n=0": [
                [kernel("copy", 3, 30.0), kernel(gemm, 6, 600.0)],
                [kernel(gemm, 6, 900.0)],
                [kernel(gemm, 6, 630.0)],
            ],
            "n=1": [[], [], []],
        },
    )
    before, after = study.cases
    rows = study.kernels_of(before)
    assert [(row.name, row.runs, row.calls_per_step, row.time_us) for row in rows] == [
        (gemm, 3, 2.0, 210.0),
        ("copy", 1, 1.0, 10.0),
    ]
    assert rows[0].identity == "triton_tem_fused_mm"
    assert study.kernels_of(after) == []


def test_a_document_of_an_earlier_version_has_none(tmp_path: Path) -> None:
    study = study_of(tmp_path / "study", {"n=0": [[kernel("copy", 3, 30.0)]] * 3})
    file = tmp_path / "comparison.json"
    document.write(file, study)
    assert document.read(file) == study
    old = json.loads(file.read_text(encoding="utf-8"))
    del old["kernels"]
    file.write_text(json.dumps(old), encoding="utf-8")
    assert document.read(file).kernels == ()
    assert document.read(file).operators == study.operators
