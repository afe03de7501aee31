"""What a study or one of its rounds has measured is neither tried nor advised again."""

from __future__ import annotations

from pathlib import Path

import pytest
from study_tree import StudyTree, Variant

from tracelock.diagnosis.model import Remedy
from tracelock.io import read_json, write_json
from tracelock.study.remedies import remedies_document
from tracelock.study.rounds import plan_round

REMEDIES = (*(Remedy({"num_workers": count}, "less waiting") for count in (2, 4)), Remedy({}, "", "load less"))


def made(folder: Path, *counts: int) -> Path:
    """Write a study of equally fast variants whose traces all advise two workers, then four, then other code."""
    tree = StudyTree([Variant({"num_workers": each}, code="dataloader-bound", remedies=REMEDIES) for each in counts])
    tree.write(folder)
    plan = read_json(folder / "plan.json", "plan")
    limits = {"test": True, "max_rounds": 1, "max_runs": 60, "budget_minutes": 60.0}
    write_json(folder / "plan.json", {**plan, "remedies": limits})
    for variant in plan["variants"]:
        spec = {"schema": "tracelock/spec/1", "experiment": "demo", "settings": variant["settings"], "digest": "x"}
        place = {"environment": "default", "variant": variant["id"], "baseline": variant["id"] == plan["baseline"]}
        write_json(folder / "runs" / "default" / variant["id"] / "spec.json", {**spec, **place})
    return folder


@pytest.mark.parametrize(
    ("counts", "tried", "advice"),
    [
        ((0,), [2, 4], "load less"),
        ((0, 2), [4], "load less"),
        ((0, 2, 4), [], "load less"),
    ],
)
def test_variants_of_the_study_are_not_tried_again(
    tmp_path: Path, counts: tuple[int, ...], tried: list[int], advice: str
) -> None:
    folder = made(tmp_path, *counts)
    plan_round(folder, 1)
    proposals = read_json(folder / "rounds" / "1" / "round.json", "round")["proposals"]
    assert [each["settings"]["num_workers"] for each in proposals] == tried
    if not tried:
        left = remedies_document(folder, 1)["left"]
        assert left is not None
        assert left["advice"] == advice
