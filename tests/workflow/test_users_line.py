"""A recording with Python stacks is made by itself where it can name the user's line of the main finding."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tracelock.study.comparison import read

WORKLOAD = """
import time

import torch
from torch.utils.data import DataLoader, default_collate

from tracelock.runner.workload import Workload


def collate(rows):
    time.sleep(0.02)
    return default_collate(rows)


def build(settings):
    model = torch.nn.Linear(8, 8)
    loader = DataLoader(torch.rand(400, 8), batch_size=8, collate_fn=collate, num_workers=settings["num_workers"])
    return Workload(loader, lambda batch: model(batch).sum().backward(), model)
"""
STUDY = """
name: sleepy
workload: {build: "train.py:build"}
baseline: {num_workers: WORKERS}
repeats: 1
repeat_disturbed: false
timing: {warmup_steps: 1, steps: 5}
profiler: {wait: 0, warmup: 1, active: 3}
limits: {max_duration_s: 60}
"""


@pytest.mark.parametrize(("workers", "more"), [(0, 1), (1, 0)])
def test_the_line_that_sleeps_is_named(tmp_path: Path, snakemake, workers: int, more: int) -> None:
    (tmp_path / "train.py").write_text(WORKLOAD, encoding="utf-8")
    (tmp_path / "sleepy.yaml").write_text(STUDY.replace("WORKERS", str(workers)), encoding="utf-8")
    snakemake(study="sleepy.yaml")
    base = tmp_path / "results" / "sleepy"
    plan = json.loads((base / "stacks" / "plan.json").read_text())
    assert len(plan["runs"]) == more
    found = read(base / "comparison.json")
    main = found.findings[0]
    assert main.code == "dataloader-bound"
    assert len(found.runs) == 1  # what is recorded with stacks is compared with nothing
    if more:
        assert f"{main.placed}".startswith(
            "collate sleeps: <built-in function sleep>, 1.0 calls at train.py(10): collate"
        )
        assert str(main.placed) in (base / "report.html").read_text().replace("&lt;", "<").replace("&gt;", ">")
    else:
        assert main.placed is None  # frames of worker processes are in no trace
