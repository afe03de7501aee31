"""From a results folder to a comparison."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from study_tree import StudyTree, Variant, demo_tree

from tracelock.diagnosis.model import Remedy
from tracelock.errors import TracelockError
from tracelock.io import read_json, write_json
from tracelock.study import comparison as document
from tracelock.study.compare import compare
from tracelock.study.comparison import Comparison

SLOW, FAST = Variant({"num_workers": 0}, step_us=180_000, loading=0.4), Variant({"num_workers": 2}, loading=0.02)


def runs_of(folder: Path, environment: str, variant: str) -> list[dict[str, Any]]:
    paths = sorted(folder.joinpath("runs", environment, variant).glob("*/run.json"))
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def change(path: Path, **values: Any) -> None:
    write_json(path, {**json.loads(path.read_text(encoding="utf-8")), **values})


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Comparison]:
    folder = demo_tree().write(tmp_path_factory.mktemp("demo"))
    return folder, compare(folder)


def test_figures_of_a_case_are_medians_over_its_runs(demo: tuple[Path, Comparison]) -> None:
    folder, found = demo
    for case in found.cases:
        runs = runs_of(folder, case.environment, case.variant)
        timed = [run["timed"] for run in runs]
        assert case.runs == case.planned == len(runs) == 3
        assert case.step.value == median(part["duration_us"] / part["steps"] for part in timed)
        assert case.step.low <= case.step.value <= case.step.high
        assert case.sample.value == median(part["duration_us"] / part["samples"] for part in timed)
        assert case.throughput.value == pytest.approx(1e6 / case.sample.value)
        assert case.throughput.low == pytest.approx(1e6 / case.sample.high)
        assert case.loading.timed == pytest.approx(median(sum(p["loading_us"]) / p["duration_us"] for p in timed))
        assert case.profiler_overhead == median(run["profiled"]["overhead_ratio"] for run in runs)
        assert case.peaks.peak_rss_bytes == max(run["memory"]["peak_rss_bytes"] for run in runs)
        assert case.peaks.peak_allocated_bytes is None


def test_variants_with_another_batch_are_compared_by_time_per_sample(demo: tuple[Path, Comparison]) -> None:
    _, found = demo
    cases = {case.variant: case for case in found.cases}
    row = next(row for row in found.comparisons if row.variant.startswith("batch_size=64,num_workers=0"))
    reference = cases[row.reference_variant]
    assert row.metric == "time per sample"
    assert row.difference.ratio.value == pytest.approx(cases[row.variant].sample.value / reference.sample.value)
    assert row.difference.ratio.value < 1 < row.step_ratio
    assert row.step_ratio == pytest.approx(cases[row.variant].step.value / reference.step.value)


def test_without_samples_the_step_time_is_compared(tmp_path: Path) -> None:
    variants = [Variant({"num_workers": n}, step_us=1000.0 * (2 - n), samples_per_step=None) for n in (0, 1)]
    found = compare(StudyTree(variants).write(tmp_path))
    assert [row.metric for row in found.comparisons] == ["step time"]
    assert found.comparisons[0].difference.ratio.value == pytest.approx(found.comparisons[0].step_ratio)
    assert {case.throughput for case in found.cases} == {None}


def test_every_variant_is_compared_once_with_the_baseline(demo: tuple[Path, Comparison]) -> None:
    _, found = demo
    assert sorted(row.variant for row in found.comparisons) == sorted(c.variant for c in found.cases if not c.baseline)
    assert {row.reference_variant for row in found.comparisons} == {found.baseline}
    assert {row.verdict for row in found.comparisons} == {"faster"}
    assert found.factors == ("batch_size", "num_workers", "persistent_workers")


def test_the_answer_names_cause_remedy_and_gain(demo: tuple[Path, Comparison]) -> None:
    _, found = demo
    (answer,) = found.answers
    fastest = min(found.cases, key=lambda case: case.sample.value)
    assert answer.finding.code == "dataloader-bound"
    assert (answer.finding.runs, answer.finding.analysed) == (3, 3)
    assert answer.best.variant == fastest.variant
    assert answer.best.changed == {
        "batch_size": (32, 64), "num_workers": (0, 2), "persistent_workers": (False, True)
    }  # fmt: skip
    (remedy,) = answer.finding.remedies
    assert remedy.tested_by == "batch_size=32,num_workers=2,persistent_workers=false"
    assert remedy.difference.verdict == "faster"


def test_a_remedy_that_no_variant_applies_is_not_called_tested(tmp_path: Path) -> None:
    remedies = (Remedy({"num_workers": 7}, "less"), Remedy({}, "less", code="cache the decoded images"))
    found = compare(StudyTree([Variant({"num_workers": 0}, loading=0.4, remedies=remedies), FAST]).write(tmp_path))
    assert [remedy.tested_by for remedy in found.answers[0].finding.remedies] == [None, None]


def test_nothing_is_best_where_nothing_is_clearly_faster(tmp_path: Path) -> None:
    found = compare(StudyTree([FAST, SLOW]).write(tmp_path))
    assert found.answers[0].best is None
    assert [row.verdict for row in found.comparisons] == ["slower"]


def test_lost_runs_are_missing_with_their_log_and_the_case_says_so(tmp_path: Path) -> None:
    found = compare(StudyTree([SLOW, FAST], lost=(("default", FAST.id, 2),)).write(tmp_path))
    (missing,) = found.missing
    assert (missing.variant, missing.repeat, missing.reason) == (FAST.id, 2, "failed")
    assert missing.log == f"runs/default/{FAST.id}/2/log.txt"
    assert [(case.runs, case.planned) for case in found.cases] == [(3, 3), (2, 3)]
    assert found.comparisons[0].runs == 2


def test_a_variant_without_any_run_stays_in_the_comparison(tmp_path: Path) -> None:
    lost = tuple(("default", FAST.id, repeat) for repeat in (1, 2, 3))
    found = compare(StudyTree([SLOW, FAST], lost=lost).write(tmp_path))
    case = found.cases[1]
    assert (case.runs, case.planned, case.step, case.explained.finding) == (0, 3, None, None)
    assert found.comparisons == ()
    assert found.unknown == {f"comparisons/default/{FAST.id}": "no finished run"}


def test_without_the_baseline_nothing_is_compared_and_that_is_said(tmp_path: Path) -> None:
    lost = tuple(("default", SLOW.id, repeat) for repeat in (1, 2, 3))
    found = compare(StudyTree([SLOW, FAST], lost=lost).write(tmp_path))
    assert found.comparisons == ()
    assert "baseline" in found.unknown[f"comparisons/default/{FAST.id}"]
    assert found.answers[0].case.step is None


def test_a_run_that_was_never_started_has_no_log(tmp_path: Path) -> None:
    folder = StudyTree([SLOW, FAST]).write(tmp_path)
    shutil.rmtree(folder / "runs" / "default" / FAST.id / "3")
    (missing,) = compare(folder).missing
    assert (missing.reason, missing.log) == ("was not made", None)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"digest": "of an older study"}, "was made with other settings than the plan has now"),
        ({"variant": "other"}, "says that it belongs to another folder"),
        ({"timed": {"steps": 0, "duration_us": 0, "step_us": []}}, "holds no timed step"),
        ({"timed": {"steps": "many"}}, "Expected `int`, got `str` at `timed.steps`"),
        ({"schema": "tracelock/run/9"}, "has schema 'tracelock/run/9', expected 'tracelock/run/1'"),
    ],
)
def test_unusable_results_are_excluded_and_missing_and_said(tmp_path: Path, values: Any, reason: str) -> None:
    folder = StudyTree([SLOW, FAST]).write(tmp_path)
    change(folder / "runs" / "default" / FAST.id / "2" / "run.json", **values)
    found = compare(folder)
    assert [(run.variant, run.repeat, run.reason) for run in found.excluded] == [(FAST.id, 2, reason)]
    assert [(run.variant, run.repeat, run.reason) for run in found.missing] == [(FAST.id, 2, reason)]
    assert found.cases[1].runs == 2


def test_half_a_file_is_excluded(tmp_path: Path) -> None:
    folder = StudyTree([SLOW, FAST]).write(tmp_path)
    path = folder / "runs" / "default" / FAST.id / "2" / "run.json"
    path.write_bytes(path.read_bytes()[:100])
    assert compare(folder).excluded[0].reason.startswith("is not JSON")


def test_results_of_a_variant_that_left_the_study_are_excluded(tmp_path: Path) -> None:
    folder = StudyTree([SLOW, FAST]).write(tmp_path)
    shutil.copytree(folder / "runs" / "default" / FAST.id, folder / "runs" / "default" / "num_workers=9")
    found = compare(folder)
    assert {(run.variant, run.reason) for run in found.excluded} == {("num_workers=9", "is not in the plan")}
    assert len(found.cases) == 2
    assert not found.missing


def test_a_run_without_analysis_is_measured_and_not_explained(tmp_path: Path) -> None:
    folder = StudyTree([SLOW, FAST]).write(tmp_path)
    for repeat in (1, 2, 3):
        (folder / "runs" / "default" / SLOW.id / str(repeat) / "analysis.json").unlink()
    (folder / "runs" / "default" / FAST.id / "1" / "analysis.json").write_text("{}")
    found = compare(folder)
    assert found.cases[0].runs == 3
    assert (found.cases[0].explained.analysed, found.cases[0].explained.finding) == (0, None)
    assert found.cases[0].explained.breakdown is None
    assert found.cases[1].explained.analysed == 2
    assert found.answers[0].finding is None
    assert found.unknown[f"runs/default/{SLOW.id}/1/analysis"] == "the trace of this run was not analysed"
    assert "schema" in found.unknown[f"runs/default/{FAST.id}/1/analysis"]


def test_main_finding_is_the_one_that_leads_most_often(tmp_path: Path) -> None:
    folder = StudyTree([SLOW, FAST]).write(tmp_path)
    path = folder / "runs" / "default" / SLOW.id / "2" / "analysis.json"
    analysis = read_json(path, "analysis")
    other = {**analysis["findings"][0], "code": "launch-bound", "gain_at_most": 0.9}
    change(path, findings=[other, *analysis["findings"]])
    rows = compare(folder).findings[:2]
    assert [(row.code, row.rank, row.runs, row.analysed) for row in rows] == [
        ("dataloader-bound", 1, 3, 3),
        ("launch-bound", 2, 1, 3),
    ]


def test_breakdown_is_a_mean_whose_parts_sum_to_the_mean_step(demo: tuple[Path, Comparison]) -> None:
    folder, found = demo
    case = found.cases[0]
    paths = sorted(folder.joinpath("runs", "default", case.variant).glob("*/analysis.json"))
    steps = [read_json(path, "analysis")["step"]["mean_us"] for path in paths]
    parts = vars(case.explained.breakdown).values()
    assert sum(parts) == pytest.approx(sum(steps) / 3)


def test_environments_are_compared_with_their_own_baseline_and_with_each_other(tmp_path: Path) -> None:
    slower = Variant({"num_workers": 2}, loading=0.02, factor=1.5)
    tree = StudyTree([SLOW, slower], environments=("a", "b"), unlocked={"a": False, "b": True}, gpus=2)
    found = compare(tree.write(tmp_path))
    within = [row.key for row in found.comparisons if row.within]
    across = {row.key: row for row in found.comparisons if not row.within}
    assert within == [("a", slower.id), ("b", slower.id)]
    assert list(across) == [("b", SLOW.id), ("b", slower.id)]
    assert across["b", slower.id].difference.ratio.value == pytest.approx(1.5, rel=0.05)
    assert across["b", slower.id].verdict == "slower"
    assert across["b", SLOW.id].verdict in ("no difference", "unclear")
    assert [row.unlocked for row in found.comparisons] == [False, True, True, True]
    assert {case.environment: case.unlocked for case in found.cases} == {"a": False, "b": True}
    assert [answer.environment for answer in found.answers] == ["a", "b"]
    assert found.environments[1].note == "differs from its lock in 1 place: numpy"


def test_device_use_is_a_mean_over_devices_and_its_shares_sum_to_one(tmp_path: Path) -> None:
    found = compare(StudyTree([SLOW, FAST], gpus=2).write(tmp_path))
    use = found.cases[0].explained.device
    assert use.count == 2
    assert use.utilization == pytest.approx(1 - 0.4 - 0.15)
    assert use.utilization + sum(vars(use.idle_causes).values()) == pytest.approx(1)


def test_an_unchecked_environment_is_neither_locked_nor_unlocked(tmp_path: Path) -> None:
    found = compare(StudyTree([SLOW, FAST], unlocked={"default": None}).write(tmp_path))
    assert (found.environments[0].unlocked, found.environments[0].note) == (None, "was not checked against a lock")


def remedies(tmp: Path, path: list[dict[str, Any]], **more: Any) -> None:
    tried = [{key: value for key, value in edge.items() if key != "from"} for edge in path]
    document = {
        "schema": "tracelock/remedies/1",
        "rounds": [{"round": 1, "from": SLOW.id, "stopped": None, "tried": tried}],
        "path": path,
        "best": "num_workers=4",
        "best_settings": {"num_workers": 4},
        "best_yaml": "num_workers: 4\n",
        "stopped": "nothing that the last round tried clearly helped",
    }
    write_json(tmp / "remedies.json", {**document, **more})


EDGE = {"from": SLOW.id, "to": "num_workers=4", "finding": "dataloader-bound", "settings": {"num_workers": 4},
        "ratio": 0.33, "ratio_low": 0.32, "ratio_high": 0.34, "verdict": "helped", "why": "", "runs": 3}  # fmt: skip


def test_the_path_of_tested_remedies_is_read(tmp_path: Path) -> None:
    folder = StudyTree([SLOW, FAST]).write(tmp_path)
    remedies(folder, [EDGE])
    found = compare(folder).remedies
    (edge,) = found.path
    assert (edge.source, edge.target, edge.ratio, edge.verdict) == (SLOW.id, "num_workers=4", 0.33, "helped")
    assert found.rounds[0].tried[0].source == SLOW.id
    assert (found.best_settings, found.best_yaml) == ({"num_workers": 4}, "num_workers: 4\n")


def test_without_tested_remedies_there_is_no_path(demo: tuple[Path, Comparison]) -> None:
    assert demo[1].remedies is None


def test_a_run_that_took_far_longer_than_the_others_is_named(tmp_path: Path) -> None:
    folder = StudyTree([SLOW, FAST]).write(tmp_path)
    path = folder / "runs" / "default" / FAST.id / "2" / "run.json"
    timed = read_json(path, "run")["timed"]
    change(path, timed={**timed, "duration_us": timed["duration_us"] * 6})
    found = compare(folder)
    assert [(run.variant, run.repeat) for run in found.disturbed()] == [(FAST.id, 2)]
    assert found.disturbed()[0].relative == pytest.approx(6, rel=0.05)
    assert found.cases[1].runs == 3  # named, not removed


def test_variants_whose_plan_does_not_say_what_distinguishes_them(tmp_path: Path) -> None:
    folder = StudyTree([SLOW, FAST]).write(tmp_path)
    plan = read_json(folder / "plan.json", "plan")
    change(folder / "plan.json", variants=[{**variant, "overrides": None} for variant in plan["variants"]])
    assert compare(folder).factors == ("num_workers",)


def test_document_round_trips_and_has_stable_bytes(demo: tuple[Path, Comparison], tmp_path: Path) -> None:
    folder, found = demo
    for name in ("one", "two"):
        document.write(tmp_path / name, compare(folder) if name == "two" else found)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert document.read(tmp_path / "one") == found


def test_a_damaged_document_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "comparison.json"
    write_json(path, {"schema": "tracelock/comparison/1", "experiment": 3})
    with pytest.raises(TracelockError, match=r"`experiment`.*scripts/compare\.py"):
        document.read(path)


def test_a_folder_without_plan_or_runs_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(TracelockError, match=r"holds no plan\.json"):
        compare(tmp_path)
    folder = StudyTree([SLOW]).write(tmp_path / "x")
    shutil.rmtree(folder / "runs")
    with pytest.raises(TracelockError, match="no finished run") as error:
        compare(folder)
    assert error.value.exit_code == 1
