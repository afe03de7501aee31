"""A study that keeps few traces ends with the same results, and loses nothing when it is analysed again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytestmark = [pytest.mark.workflow, pytest.mark.slow]


def traces(base: Path) -> list[Path]:
    return sorted(base.glob("runs/*/*/*/trace.json.gz"))


def analyses(base: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(base.glob("runs/*/*/*/analysis.json"))}


def test_traces_go_their_analyses_stay_and_nothing_is_measured_again(snakemake, tiny: Path) -> None:
    text = tiny.read_text(encoding="utf-8")
    tiny.write_text(text + "keep_traces: best\n", encoding="utf-8")
    snakemake()
    base = tiny.parent / "results" / "tiny"
    said = json.loads((base / "traces.json").read_text(encoding="utf-8"))
    assert said["kept"]["runs"] == len(traces(base))
    assert {path.parents[1].name for path in traces(base)} >= {"num_workers=0"}
    assert said["kept"]["runs"] + said["freed"]["runs"] == 4
    assert said["freed"]["runs"] >= 2
    page = (base / "report.html").read_text(encoding="utf-8")
    assert "taken away after its analysis (keep_traces: best)" in page
    assert "Nothing to be done" in "".join((done := snakemake()).stdout + done.stderr)

    was, runs = analyses(base), {path: path.stat().st_mtime_ns for path in base.glob("runs/*/*/*/run.json")}
    tiny.write_text(text + "keep_traces: none\n", encoding="utf-8")
    snakemake()
    assert traces(base) == []
    snakemake("--forcerun", "analyze")
    assert analyses(base) == was
    assert {path: path.stat().st_mtime_ns for path in runs} == runs
