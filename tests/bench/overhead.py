"""A study of 100 runs of a 3 s workload, against the sum of its processes, each measured alone."""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.measure import ROOT, run
from tests.bench.options import Options

BY_NAME_ONLY = True  # it takes ten minutes, and a machine that is quiet meanwhile
RUNS = int(os.environ.get("RUNS", "100"))
ALONE = 5

_WORKLOAD = """
import time

import torch
from tracelock.runner.settings import Setting
from tracelock.runner.workload import Workload

SETTINGS = (Setting("size", "int", 1, "which variant it is"),)


def step(batch):
    time.sleep(0.1)
    return batch.sum().item()


def build(settings):
    return Workload(loader=[torch.ones(4, settings["size"])] * 50, step=step)
"""

_STUDY = f"""
name: overhead
workload: {{build: "work.py:build"}}
device: cpu
threads: 1
baseline: {{size: 1}}
factors: {{size: [1, 2, 3, 4]}}
repeats: {RUNS // 4}
repeat_disturbed: false
timing: {{warmup_steps: 2, steps: 23}}
profiler: {{wait: 0, warmup: 2, active: 3}}
limits: {{max_duration_s: 60}}
"""


def bench(options: Options) -> None:
    """Run the study, then its processes by themselves, and print the ratio."""
    del options
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "work.py").write_text(_WORKLOAD, encoding="utf-8")
        (folder / "overhead.yaml").write_text(_STUDY, encoding="utf-8")
        os.chdir(folder)
        began = time.perf_counter()
        study = [sys.executable, "-m", "tracelock.cli", "study", "run", "overhead.yaml"]
        run("study", study, {"PYTHONPATH": str(ROOT / "scripts")})
        whole = time.perf_counter() - began
        base = folder / "results" / "overhead"
        records = [json.loads(path.read_text(encoding="utf-8")) for path in base.glob("runs/*/*/*/run.json")]
        assert len(records) == RUNS
        one = base / "runs" / "default" / "size=1"
        check = base / "envs" / "default" / "check.json"
        measured = _alone(
            "run_workload", "--spec", one / "spec.json", "--check", check, "--repeat", 1, "--output", "out"
        )
        analysed = _alone("analyze", "--run", one / "1" / "run.json", "--output", "analysis.json")
        rest = [
            _alone("compare", "--results", base, times=1),
            _alone("figures", "--results", base, times=1),
            _alone("report", "--results", base, times=1),
        ]
    total = RUNS * (measured + analysed) + sum(rest)
    print("| what | seconds |\n| --- | --- |")
    print(f"| the study of {RUNS} runs | {whole:.1f} |")
    print(f"| a run alone (median of {ALONE}) | {measured:.2f} |")
    print(f"| an analysis alone (median of {ALONE}) | {analysed:.2f} |")
    print(f"| comparison, figures, report | {sum(rest):.1f} |")
    print(f"| the sum of all processes | {total:.1f} |")
    print(f"\nThe study takes {whole / total:.2f} times the sum, {whole / RUNS / measured:.2f} times that of its runs.")


def _alone(program: str, *words: object, times: int = ALONE) -> float:
    """Return the median time of a program of the workflow, by the clock."""
    command = [sys.executable, str(ROOT / "scripts" / f"{program}.py"), *map(str, words)]
    return statistics.median(run(program, command).wall_s for _ in range(times))
