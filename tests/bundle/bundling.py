"""A finished study in a folder of its own, made up, for tests of archives."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from study_tree import StudyTree, Variant

from tracelock.io import read_json, schema, write_json
from tracelock.report.figures import write_figures
from tracelock.report.html import write_report
from tracelock.study import comparison
from tracelock.study.compare import compare
from tracelock.study.tables import write_tables

STUDY = """
name: demo
description: Does a larger batch train faster?
workload:
  build: train.py:build
baseline: {batch_size: 32}
factors:
  batch_size: [32, 64]
"""
TRAIN = """
import helper
from package import part
def build(settings):
    return helper.make(settings, part)
"""


def tree(**changes: object) -> StudyTree:
    """Return a study whose second variant is clearly faster."""
    first = Variant({"batch_size": 32}, step_us=200_000, loading=0.4)
    second = Variant({"batch_size": 64}, step_us=210_000, samples_per_step=64, loading=0.05)
    return StudyTree([first, second], **changes)  # type: ignore[arg-type]


def finished(folder: Path, made: StudyTree | None = None, figures: bool = False) -> Path:
    """Write a study with its code below `folder`, measured and compared; return its results."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "demo.yaml").write_text(STUDY, encoding="utf-8")
    (folder / "train.py").write_text(TRAIN, encoding="utf-8")
    (folder / "helper.py").write_text("make = print\n", encoding="utf-8")
    (folder / "package").mkdir(exist_ok=True)
    (folder / "package" / "__init__.py").write_text("", encoding="utf-8")
    (folder / "package" / "part.py").write_text("from . import other\n", encoding="utf-8")
    (folder / "package" / "other.py").write_text("", encoding="utf-8")
    (folder / "unused.py").write_text("", encoding="utf-8")
    results = (made or tree()).write(folder / "results" / "demo")
    plan = read_json(results / "plan.json", "plan")
    write_json(results / "plan.json", {**plan, "workload": "train.py:build"})
    machine = {"schema": schema("machine"), "host": "bench-1", "cpu": {"model": "Xeon"}, "gpus": [], "driver": None}
    for place in (results / "envs").iterdir():
        write_json(place / "machine.json", machine)
    for run in results.rglob("run.json"):
        write_trace(run.with_name("trace.json.gz"), {"path": "aten::mm"})
    derive(results, figures)
    return results


def derive(results: Path, figures: bool = False) -> None:
    """Write what follows from the records."""
    found = compare(results)
    write_tables(found, results / "tables")
    comparison.write(results / "comparison.json", found)
    if figures:
        write_figures(found, results / "figures")
        write_report(results, results / "report.html")


def write_trace(path: Path, *events: object) -> None:
    """Write a trace of one event each."""
    rows = [{"ph": "X", "name": json.dumps(event), "ts": 1, "dur": 1, "pid": 1, "tid": 1} for event in events]
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": rows}).encode(), mtime=0))
