"""What the diagnosis proposes is run, beside the variant that it starts from, and judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

# Each record is unpacked 60 times: loading is nine tenths of the step, whatever else the machine does.
HEAL = """
name: heal
workload:
  build: tracelock.runner.workloads.mlp:build
  settings: {batch_size: 32, item_cost: 60, records: 256}
baseline: {num_workers: 0}
threads: 1
repeats: 2
timing: {warmup_steps: 2, steps: 12}
profiler: {wait: 0, warmup: 1, active: 3}
limits: {max_duration_s: 60}
remedies: {test: true, max_rounds: 1, max_runs: 8}
"""


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_proposed_remedy_is_measured_and_judged(snakemake, tmp_path: Path) -> None:
    (tmp_path / "heal.yaml").write_text(HEAL, encoding="utf-8")
    snakemake(study="heal.yaml")
    base = tmp_path / "results" / "heal"
    summary = read(base / "remedies.json")
    (tried,) = [item for item in summary["rounds"][0]["tried"] if item["settings"].get("num_workers")]
    assert tried["finding"] == "dataloader-bound"
    assert tried["ratio_low"] <= tried["ratio"] <= tried["ratio_high"]
    assert tried["verdict"].startswith(("helped", "made it worse", "no difference larger than", "unclear"))

    plan = read(base / "rounds" / "1" / "plan.json")
    assert plan["baseline"] == "num_workers=0"  # measured again, beside the proposals
    runs = [read(path) for path in base.glob("rounds/1/runs/*/*/*/run.json")]
    assert len(runs) == 2 * len(plan["variants"])
    order = [(run["variant"], run["repeat"]) for run in sorted(plan["runs"], key=lambda run: run["order"])]
    assert [(run["variant"], run["repeat"]) for run in sorted(runs, key=lambda run: run["started"])] == order

    times = {variant["id"]: [] for variant in plan["variants"]}
    for run in runs:
        times[run["variant"]].append(run["timed"]["duration_us"] / run["timed"]["samples"])
    expected = sum(times[tried["to"]]) / sum(times["num_workers=0"])  # the median of two runs is their mean
    assert tried["ratio"] == pytest.approx(expected)

    assert yaml.safe_load(summary["best_yaml"]) == summary["best_settings"]
    if tried["verdict"] == "helped":
        assert summary["path"][0]["from"] == "num_workers=0"
        assert summary["best_settings"]["num_workers"] == tried["settings"]["num_workers"]
    again = snakemake(study="heal.yaml")
    assert "Nothing to be done" in again.stdout + again.stderr
