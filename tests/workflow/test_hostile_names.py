"""Names with blanks, quotes, `$()`, line ends and leading dashes go through a whole study as what they are: texts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

HOSTILE = '-x it\'s "$(touch pwned)" `touch pwned`; touch pwned & $HOME \\ {wildcards.x} %s\nline'
TRAIN = """
from tracelock.runner.settings import Setting
from tracelock.runner.workloads import mlp
SETTINGS = (*mlp.SETTINGS, Setting("note", "str", "", "a text"))
def build(settings):
    settings["note"]
    return mlp.build(settings)
"""


def test_hostile_names_are_texts_all_the_way(root: Path, tmp_path: Path) -> None:
    place = tmp_path / "-a b'c\"d $(touch pwned) `touch pwned`;x"
    (place / "my code").mkdir(parents=True)
    (place / "my code" / "train it's $(touch pwned).py").write_text(TRAIN, encoding="utf-8")
    study = {
        "name": "hostile",
        "description": HOSTILE,
        "workload": {"build": "my code/train it's $(touch pwned).py:build", "settings": {"batch_size": 8}},
        "baseline": {"note": "plain"},
        "factors": {"note": ["plain", HOSTILE]},
        "repeats": 1,
        "allow_unlocked": True,
        "timing": {"warmup_steps": 1, "steps": 2},
        "profiler": {"wait": 0, "warmup": 1, "active": 1},
    }
    file = place / "-study it's $(touch pwned).yaml"
    file.write_text(json.dumps(study), encoding="utf-8")
    command = [sys.executable, "-m", "tracelock.cli", "study", "run", "--results", "my results; touch pwned", "--"]
    environment = {**os.environ, "PYTHONPATH": str(root / "scripts"), "NO_COLOR": "1"}
    done = subprocess.run(
        [*command, file.name], cwd=place, env=environment, capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = place / "my results; touch pwned" / "hostile"
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(results.glob("runs/*/*/1/run.json"))]
    assert {run["settings"]["note"] for run in runs} == {"plain", HOSTILE}
    assert (results / "report.html").is_file()
    assert "$(touch pwned)" in json.loads((results / "comparison.json").read_text(encoding="utf-8"))["description"]
    assert [path for path in tmp_path.rglob("*") if path.name == "pwned"] == []
