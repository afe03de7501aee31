"""The analysis of a run whose trace is not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tracelock.errors import TracelockError
from tracelock.study.run_analysis import analyze_run


@pytest.mark.parametrize(
    ("profiled", "reason"),
    [
        ({"trace": "trace.json.gz"}, "trace.json.gz is not there any more"),
        ({"trace": None, "stopped_by": "max_trace_mb"}, "the run kept no trace: max_trace_mb"),
        ({"trace": None}, "the run kept no trace: nothing was recorded"),
    ],
)
def test_a_run_without_its_trace_says_why_and_stops_nothing(
    tmp_path: Path, profiled: dict[str, object], reason: str
) -> None:
    run = tmp_path / "run.json"
    run.write_text(json.dumps({"schema": "tracelock/run/1", "profiled": profiled}))
    analyze_run(run, None, {}, tmp_path / "analysis.json")
    document = json.loads((tmp_path / "analysis.json").read_text())
    assert document == {"schema": "tracelock/no-analysis/1", "reason": reason}


def test_a_trace_of_which_nothing_else_is_known_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(TracelockError, match=r"absent\.json"):
        analyze_run(None, tmp_path / "absent.json", {}, tmp_path / "analysis.json")
