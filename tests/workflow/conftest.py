"""Run studies for real, in folders of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

TINY = """
name: tiny
description: Two variants of the walk-through's model, as small as they can be.
workload:
  build: tracelock.runner.workloads.mlp:build
  settings: {batch_size: 8}
baseline: {num_workers: 0}
factors:
  num_workers: [0, 1]
repeats: 2
repeat_disturbed: false
stacks: false
timing: {warmup_steps: 1, steps: 4}
profiler: {wait: 0, warmup: 1, active: 2}
limits: {max_duration_s: 60}
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Return the file of a study of four runs, alone in a folder."""
    file = tmp_path / "tiny.yaml"
    file.write_text(TINY, encoding="utf-8")
    return file


@pytest.fixture
def snakemake(root: Path, tmp_path: Path) -> Run:
    """Return a call of Snakemake on the project's workflow, with the test's folder as working folder."""

    def call(*options: str, study: str = "tiny.yaml", check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [
            *(sys.executable, "-m", "snakemake", "--snakefile", str(root / "Snakefile")),
            *("--workflow-profile", str(root / "workflow" / "profiles" / "default")),
            *options,
            *("--config", f"study={study}"),
        ]
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1"}
        )
        if check:
            assert done.returncode == 0, done.stdout + done.stderr
        return done

    return call
