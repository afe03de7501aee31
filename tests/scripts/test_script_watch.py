"""``tracelock watch``: lines, files and the profile of a slow-down, of a script that slows down."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from scripts_support import CASES

SCRIPTS = Path(__file__).parents[2] / "scripts"


def test_a_script_that_slows_down_is_told_and_recorded(tmp_path: Path) -> None:
    files = ["--jsonl", str(tmp_path / "w.jsonl"), "--prometheus", str(tmp_path / "w.prom")]
    words = ["watch", "-o", str(tmp_path / "out"), "--profile-on-slowdown", "--every", "1", *files]
    command = [sys.executable, "-m", "tracelock.cli", *words, "--", sys.executable, "slowing.py"]
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=CASES, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr
    # Step 71, give or take; what else the machine does may slow steps down, too.
    told = [int(step) for step in re.findall(r"steps are slower since step (\d+)", done.stderr)]
    assert any(60 <= step <= 80 for step in told), done.stderr
    rows = [json.loads(line) for line in (tmp_path / "w.jsonl").read_text().splitlines()]
    assert (rows[-1]["step"], rows[-1]["slowdowns"], rows[-1]["schema"]) == (140, len(told), "tracelock/watch/1")
    assert 'rank="0"} 140' in (tmp_path / "w.prom").read_text()
    assert (tmp_path / "out" / "rank0" / "trace.json.gz").is_file()
    assert not list((tmp_path / "out").glob(".outside-*"))
