"""The document of an analysis: what is written is what is read, and what is wrong is named by its key path."""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from tracelock.analysis import document
from tracelock.analysis.model import Analysis, Breakdown, Memory, MemoryPoint, Step, StepSummary, TraceSection
from tracelock.diagnosis.model import Diagnosed, Evidence, Finding, Remedy
from tracelock.errors import TracelockError
from tracelock.trace.columns import TraceWarning

BREAKDOWN = Breakdown(1.0, 2.0, 0.0, 0.0, 0.5, 0.0, 0.25, 0.001)


def diagnosed() -> Diagnosed:
    finding = Finding(
        code="dataloader-bound",
        title="The loader is slow",
        severity="warning",
        share_of_step=0.4,
        gain_at_most=None,
        confidence="high",
        evidence=(Evidence("DataLoader: 1 of 2 µs", 0.5, "", 0.05),),
        remedies=(Remedy({"num_workers": 4, "pin_memory": True}, "less waiting"),),
    )
    return Diagnosed(
        trace=TraceSection("a.json", 10, 3, "salvaged", (TraceWarning("nan", 2, "2 values"),), None, None, None, ()),
        steps=(Step("ProfilerStep#1", 0.0, 3.751, BREAKDOWN),),
        step=StepSummary(1, 3.751, 3.751, BREAKDOWN, 0.0, "ProfilerStep"),
        gpus=(),
        operators=(),
        kernels=(),
        transfers=(),
        memory=(Memory("cpu", 5, None, -1.5, (MemoryPoint(0.5, 5, None),)),),
        unknown={"memory.cpu.peak_reserved_bytes": "not recorded"},
        findings=(finding,),
        verdict="Slow.",
        settings={"batch_size": 64},
    )


def test_a_document_read_is_the_one_written(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "analysis.json"
    document.write(path, diagnosed())
    assert document.read(path, Diagnosed) == diagnosed()
    assert json.loads(path.read_text())["schema"] == "tracelock/analysis/1"


def test_the_part_below_the_findings_can_be_read_alone(tmp_path: Path) -> None:
    path = tmp_path / "analysis.json"
    document.write(path, diagnosed())
    found = document.read(path, Analysis)
    assert type(found) is Analysis
    assert found.steps == diagnosed().steps


def test_keys_of_a_later_version_are_passed_over() -> None:
    later = {**document.encode(diagnosed()), "novelty": 1}
    assert document.decode(later, Diagnosed) == diagnosed()


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (("steps", 0, "duration_us"), "3.7", "steps[0].duration_us"),
        (("trace", "events"), None, "trace.events"),
        (("findings", 0, "severity"), "fatal", "findings[0].severity"),
        (("memory", 0, "curve", 0, "allocated_bytes"), 1.5, "memory[0].curve[0].allocated_bytes"),
    ],
)
def test_a_value_of_another_type_is_named_by_its_key_path(path: tuple[Any, ...], value: Any, named: str) -> None:
    broken = copy.deepcopy(json.loads(json.dumps(document.encode(diagnosed()))))
    place: Any = broken
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(TracelockError, match=r"^a\.json: is no sound") as caught:
        document.decode(broken, Diagnosed, "a.json")
    assert named in str(caught.value)


def test_a_document_of_another_kind_is_refused() -> None:
    with pytest.raises(TracelockError, match="has schema 'tracelock/run/1', expected 'tracelock/analysis/1'"):
        document.decode({**document.encode(diagnosed()), "schema": "tracelock/run/1"}, Diagnosed)


def test_a_figure_that_is_no_number_is_never_written(tmp_path: Path) -> None:
    step = dataclasses.replace(diagnosed().step, mean_us=float("nan"))
    with pytest.raises(ValueError, match="JSON"):
        document.write(tmp_path / "analysis.json", dataclasses.replace(diagnosed(), step=step))
    assert list(tmp_path.iterdir()) == []
