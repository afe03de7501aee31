"""Tables as pandas frames."""

from __future__ import annotations

import sys

import pytest
from builders import MemoryEvent, frame, kernel, launch, make_trace, op, step

import tracelock
from tracelock.analysis import analyze
from tracelock.errors import TracelockError

pytest.importorskip("pandas")

TRACE = make_trace(
    [step(0, 0, 100), op("aten::mm", 10, 20, shapes="[[2,2]]"), frame("main", 0, 50), launch(12, 3, 1)],
    [kernel("gemm", 20, 30, correlation=1)],
    [MemoryEvent(15, 64, allocated=64)],
)


def test_an_analysis() -> None:
    tables = tracelock.frames(analyze(TRACE))
    assert tables["operators"].loc[0, "name"] == "aten::mm"
    assert tables["steps"].loc[0, "breakdown_us.kernel"] == 0.03
    assert tables["gpus"].loc[0, "idle_causes_us.launch"] == 0
    assert len(tables["transfers"]) == 0


def test_a_trace() -> None:
    tables = tracelock.frames(TRACE)
    host = tables["host"]
    assert host.groupby("kind", observed=True)["duration"].sum().to_dict() == {
        "operator": 20,
        "runtime": 3,
        "annotation": 100,
        "python": 50,
    }
    assert host.set_index("name").loc["aten::mm", "shapes"] == "[[2,2]]"
    assert host["shapes"].isna().sum() == 3
    assert tables["device"].loc[0, "name"] == "gemm"
    assert tables["memory"].loc[0, "allocated"] == 64
    assert tables["flows"].empty


def test_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(TracelockError, match=r"needs pandas, which is not installed \(pip install"):
        tracelock.frames(TRACE)
