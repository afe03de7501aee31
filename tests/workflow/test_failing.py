"""A study whose runs fail: told at once and at the end; it stops when all will fail, unless it is told to go on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

STUDY = """
name: failing
workload: {build: "broken.py:build"}
baseline: {batch_size: 1}
factors: {batch_size: [1, 2, 3, 4]}
repeats: 1
device: cpu
allow_unlocked: true
timing: {warmup_steps: 0, steps: 2}
"""
BROKEN = """
import tracelock.runner.workload

def build(settings):
    raise FileNotFoundError("no such data set: train.bin")
"""


@pytest.mark.parametrize(("options", "failed"), [([], 2), (["--keep-going"], 4), (["-k"], 4)])
def test_two_runs_that_fail_alike_stop_a_study_unless_it_is_to_go_on(
    root: Path, tmp_path: Path, options: list[str], failed: int
) -> None:
    (tmp_path / "failing.yaml").write_text(STUDY)
    (tmp_path / "broken.py").write_text(BROKEN)
    done = subprocess.run(
        [sys.executable, "-m", "tracelock.cli", "study", "run", "failing.yaml", *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root / "scripts"), "TRACELOCK_LOCK_DIR": str(tmp_path / "locks")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    records = sorted((tmp_path / "results" / "failing").glob("runs/*/*/*/failure.json"))
    found = [json.loads(path.read_text()) for path in records]
    own = [each for each in found if each["cause"] != "signal"]  # a third one may have begun when the study stopped
    assert len(own) in ((4,) if options else (2, 3))
    assert len({each["same"] for each in own}) == 1
    lines = done.stdout.splitlines()
    at_once = [line for line in lines if " failed: batch_size=" in line]
    assert len(at_once) == failed
    what = f"FileNotFoundError: no such data set: train.bin at {tmp_path / 'broken.py'}:5"
    assert all(what in line for line in at_once)
    stops = [line for line in lines if "so the study stops" in line]
    assert len(stops) == (0 if options else 1)
    at_end = lines[lines.index(next(line for line in lines if line.startswith("failed: "))) :]
    assert at_end[0].count("batch_size=") == failed
    assert what in at_end[1]
    assert any(line.startswith("To go on where it stopped: ") for line in at_end)
    assert "Traceback" not in done.stdout + done.stderr
