"""keep_traces and max_total_gb: which traces of a study stay, and what is said of those that went."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from study_tree import StudyTree, Variant

from tracelock.analysis import document
from tracelock.diagnosis.model import Diagnosed
from tracelock.io import read_json, write_json
from tracelock.report.kept import traces_text
from tracelock.study.compare import compare
from tracelock.study.run_analysis import analyze_run
from tracelock.study.traces import after_analysis, finish

SIZE = 1000
BASELINE, MIDDLE, FASTEST = Variant({"num_workers": 0}), Variant({"num_workers": 1}), Variant({"num_workers": 2})


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Return results of three variants, three runs each: 100, 110, 180 ms a step in each, then less by variant."""
    base = StudyTree([BASELINE, MIDDLE, FASTEST]).write(tmp_path / "demo")
    for variant, scale in ((BASELINE, 1.0), (MIDDLE, 0.9), (FASTEST, 0.8)):
        for repeat, step_us in ((1, 180_000), (2, 100_000), (3, 110_000)):
            run = folder(base, variant, repeat)
            record = read_json(run / "run.json", "run")
            steps = record["timed"]["steps"]
            record["timed"] |= {"duration_us": step_us * scale * steps, "samples": 32 * steps}
            write_json(run / "run.json", record)
            (run / "trace.json.gz").write_bytes(b"x" * SIZE)
    return base


def folder(base: Path, variant: Variant, repeat: int) -> Path:
    return base / "runs" / "default" / variant.id / str(repeat)


def ask(base: Path, keep: str, traces: float | None = None) -> None:
    plan = read_json(base / "plan.json", "plan")
    room = None if traces is None else traces * SIZE / 1e9
    write_json(base / "plan.json", plan | {"traces": {"keep": keep, "max_total_gb": room}})


def there(base: Path) -> set[tuple[str, int]]:
    return {(file.parents[1].name, int(file.parent.name)) for file in base.glob("runs/*/*/*/trace.json.gz")}


def records(base: Path) -> list[dict[str, Any]]:
    return [read_json(file, "run") for file in sorted(base.glob("runs/*/*/*/run.json"))]


ALL = {(variant.id, repeat) for variant in (BASELINE, MIDDLE, FASTEST) for repeat in (1, 2, 3)}
NEAREST = {(BASELINE.id, 3), (FASTEST.id, 3)}  # 110 of 100, 110, 180 is the median


@pytest.mark.parametrize(
    ("keep", "room", "stay"),
    [
        ("all", None, ALL),
        ("best", None, NEAREST),
        ("none", None, set()),
        ("failed", None, {(MIDDLE.id, 2)}),
        ("all", 3, NEAREST | {(MIDDLE.id, 2)}),  # what went wrong comes before what went well
        ("best", 1, {(BASELINE.id, 3)}),
        ("all", 0.5, set()),
    ],
)
def test_what_stays_follows_from_the_policy(study: Path, keep: str, room: float | None, stay: set[object]) -> None:
    odd = folder(study, MIDDLE, 2) / "run.json"
    record = read_json(odd, "run")
    record["timed"]["stopped_by"] = "max_duration_s"
    write_json(odd, record)
    ask(study, keep, room)
    said = finish(study)
    assert there(study) == stay
    assert said["kept"] == {"runs": len(stay), "bytes": SIZE * len(stay)}
    assert said["freed"] == {"runs": 9 - len(stay), "bytes": SIZE * (9 - len(stay))}
    assert said == read_json(study / "traces.json", "traces") == finish(study)


def test_a_run_whose_trace_went_says_so_and_is_not_newer(study: Path) -> None:
    ask(study, "best")
    times = {file: file.stat().st_mtime_ns for file in study.glob("runs/*/*/*/run.json")}
    finish(study)
    assert times == {file: file.stat().st_mtime_ns for file in study.glob("runs/*/*/*/run.json")}
    for record in records(study):
        gone = (record["variant"], record["repeat"]) not in NEAREST
        assert (record["profiled"]["trace"] is None) == gone
        assert record["unknown"].get("profiled.trace") == (
            "taken away after its analysis (keep_traces: best)" if gone else None
        )
        if gone:
            assert record["profiled"]["freed"]["bytes"] == SIZE


def test_the_comparison_is_the_same_and_tells_what_went(study: Path) -> None:
    was = compare(study)
    ask(study, "best")
    finish(study)
    found = compare(study)
    assert (found.cases, found.comparisons, found.answers) == (was.cases, was.comparisons, was.answers)
    assert traces_text(was) is None
    text = str(traces_text(found))
    assert text.startswith("2 of 9 traces are kept")
    assert "(keep_traces: best)" in text


@pytest.mark.parametrize("keep", ["best", "none"])
def test_a_run_that_was_not_analysed_keeps_its_trace(study: Path, keep: str) -> None:
    ask(study, keep, 0.5)
    (folder(study, MIDDLE, 1) / "analysis.json").unlink()
    write_json(folder(study, MIDDLE, 2) / "analysis.json", {"schema": "tracelock/no-analysis/1", "reason": "damaged"})
    finish(study)
    assert {(MIDDLE.id, 1), (MIDDLE.id, 2)} <= there(study)


def test_one_that_stopped_between_record_and_trace_is_finished(study: Path) -> None:
    ask(study, "none")
    run = folder(study, BASELINE, 1)
    finish(study)
    (run / "trace.json.gz").write_bytes(b"x" * SIZE)  # as where the machine went down just before it was taken away
    was = (run / "run.json").read_bytes()
    finish(study)
    assert there(study) == set()
    assert (run / "run.json").read_bytes() == was


def test_analyses_outlive_their_traces_and_are_diagnosed_anew(study: Path) -> None:
    run = folder(study, BASELINE, 1)
    before = document.read(run / "analysis.json", Diagnosed)
    ask(study, "none")
    finish(study)
    (run / "analysis.json").unlink()  # as Snakemake does before a rule runs again
    analyze_run(run / "run.json", None, {}, run / "analysis.json")
    again = document.read(run / "analysis.json", Diagnosed)
    assert (again.steps, again.operators, again.memory) == (before.steps, before.operators, before.memory)
    assert again.findings
    changed = json.loads((run / "run.json").read_text())
    changed["profiled"] = {"trace": None, "stopped_by": "max_trace_mb"}  # measured again, and nothing was recorded
    write_json(run / "run.json", changed)
    analyze_run(run / "run.json", None, {}, run / "analysis.json")
    assert json.loads((run / "analysis.json").read_text())["schema"] == "tracelock/no-analysis/1"


def test_traces_go_while_the_study_goes_on(study: Path) -> None:
    run = folder(study, MIDDLE, 1) / "run.json"
    ask(study, "all")
    after_analysis(run)
    assert there(study) == ALL
    ask(study, "failed")
    after_analysis(run)
    assert there(study) == ALL - {(MIDDLE.id, 1)}
    ask(study, "all", 5)
    after_analysis(run)
    assert len(there(study)) == 4  # a fifth is spared, so that not every further run needs a choice
    assert {(BASELINE.id, 3), (FASTEST.id, 3)} <= there(study)


def test_traces_of_rounds_are_held_to_the_policy_of_their_study(study: Path) -> None:
    ask(study, "none")
    place = study / "rounds" / "1"
    place.mkdir(parents=True)
    (study / "runs").rename(place / "runs")
    write_json(place / "plan.json", read_json(study / "plan.json", "plan") | {"traces": {"keep": "all"}})
    traces = list(place.glob("runs/*/*/*/trace.json.gz"))
    after_analysis(traces[0].with_name("run.json"))
    assert not traces[0].exists()
    assert finish(study)["freed"]["runs"] == 9
