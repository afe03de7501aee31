"""What is said of an environment that differs from its lock."""

from __future__ import annotations

from pathlib import Path

import pytest
from study_tree import StudyTree, Variant

from tracelock.io import schema, write_json
from tracelock.study.gather import gather


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["torch"], "differs from its lock in 1 place: torch"),
        (["torch", "torch"], "differs from its lock in 2 places: torch"),
        (["a", "b", "c"], "differs from its lock in 3 places: a, b, c"),
        (["a", "b", "c", "d", "e"], "differs from its lock in 5 places: a, b, c, …"),
        ([None], "differs from its lock in 1 place"),
        ([], "equals its lock"),
    ],
)
def test_the_first_packages_that_differ_are_named(names: list[str | None], said: str, tmp_path: Path) -> None:
    folder = StudyTree([Variant({"num_workers": 0}, loading=0.3)]).write(tmp_path)
    differences = [{"kind": "version", "name": name, "fatal": True} for name in names]
    harmless = {"kind": "build", "name": "tzdata", "fatal": False}
    check = {"schema": schema("envcheck"), "ok": not names, "unlocked": bool(names)}
    write_json(folder / "envs" / "default" / "check.json", {**check, "differences": [harmless, *differences]})
    assert [each.note for each in gather(folder).environments] == [said]
