"""The workflow as a part of another one, and as a report of Snakemake's own."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

STUDY = """
name: part
workload: {build: "tracelock.runner.workloads.mlp:build", settings: {batch_size: 8}}
baseline: {num_workers: 0}
repeats: 1
repeat_disturbed: false
stacks: false
device: cpu
allow_unlocked: true
timing: {warmup_steps: 1, steps: 4}
profiler: {wait: 0, warmup: 1, active: 2}
limits: {max_duration_s: 60}
"""
OTHERS = """
module profiling:
    snakefile:
        "{root}/Snakefile"
    config:
        {{"study": "part.yaml", "results": "profiled"}}


use rule * from profiling as profiling_*


rule conclusion:
    default_target: True
    input:
        report=rules.profiling_study.input[0],
        table="profiled/part/tables/variants.csv",
    output:
        "conclusion.txt",
    shell:
        "wc -l < {{input.table:q}} > {{output}}"
"""


def call(folder: Path, *words: str) -> None:
    command = [sys.executable, "-m", "snakemake", "--cores", "1", *words]
    variables = {**os.environ, "NO_COLOR": "1", "http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_another_workflow_has_it_as_a_module_and_reports_it(root: Path, tmp_path: Path) -> None:
    (tmp_path / "part.yaml").write_text(STUDY, encoding="utf-8")
    (tmp_path / "Snakefile").write_text(OTHERS.format(root=root), encoding="utf-8")
    call(tmp_path)
    assert int((tmp_path / "conclusion.txt").read_text(encoding="utf-8")) == 2  # the heading and the variant
    call(tmp_path, "--report", "snakemake-report.html")
    page = (tmp_path / "snakemake-report.html").read_text(encoding="utf-8")
    for category in ("Answer", "Figures", "Tables"):
        assert f'"{category}"' in page
    for label in ('"figure": "step_time"', '"table": "variants"', '"study": "part"'):
        assert re.sub(r"\s", "", label) in re.sub(r"\s", "", page)
    shown = [
        base64.b64decode(found) for found in re.findall(r"data:image/svg\+xml;[^,\"]*base64,([A-Za-z0-9+/=]+)", page)
    ]
    assert any(b"<svg" in each for each in shown)
    for caption in ("stands below each figure", "what to change", "what is not known is empty"):
        assert caption in " ".join(page.split())


def test_the_catalogs_file_says_how_it_is_called(root: Path) -> None:
    usage = yaml.safe_load((root / ".snakemake-workflow-catalog.yml").read_text(encoding="utf-8"))["usage"]
    flags = usage["mandatory-flags"]["flags"].split()
    assert flags[0] == "--config"
    assert (root / flags[1].removeprefix("study=")).is_file()
    assert usage["report"] is True
