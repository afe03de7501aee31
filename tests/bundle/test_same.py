"""Whether a second measurement comes to the same: each conclusion, the verdict over all, and the likely reasons."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bundling import tree
from study_tree import Variant

from tracelock.bundle.same import Row, compared, conclusions, judge
from tracelock.study.compare import compare
from tracelock.study.comparison import Comparison


def measured(folder: Path, **steps: float) -> Comparison:
    """Return the comparison of the made-up study with other times of the second variant, or another scatter."""
    made = tree(seed=int(steps.pop("seed", 1)), repeats=int(steps.pop("repeats", 4)))
    scale, scatter = steps.pop("scale", 1.0), steps.pop("scatter", 0.01)
    first, second = made.variants
    first = replace(first, step_us=first.step_us * scale, scatter=scatter)
    second = replace(second, step_us=steps.pop("second", second.step_us) * scale, scatter=scatter)
    return compare(replace(made, variants=[first, second]).write(folder))


def words(original: Comparison, again: Comparison) -> dict[str, Row]:
    return {row.kind: row for row in conclusions(original, again)}


def test_a_machine_that_is_three_times_as_slow_comes_to_the_same(tmp_path: Path) -> None:
    first = measured(tmp_path / "1")
    again = measured(tmp_path / "2", seed=7, scale=3.0)
    rows = conclusions(first, again)
    assert judge(rows) == "same"
    assert {row.kind for row in rows if row.word == "confirmed"} == {"finding", "remedy", "best", "difference"}
    assert words(first, again)["difference"].within


def test_where_the_faster_variant_is_slower_the_conclusion_is_another(tmp_path: Path) -> None:
    first, again = measured(tmp_path / "1"), measured(tmp_path / "2", second=500_000)
    rows = words(first, again)
    assert judge(list(rows.values())) == "differs"
    assert (rows["difference"].word, rows["difference"].original, rows["difference"].again) == (
        "contradicted",
        "faster",
        "slower",
    )
    assert rows["difference"].within is False
    assert rows["best"].word == "contradicted"


def test_a_disturbed_machine_that_cannot_tell_is_no_contradiction_and_no_confirmation(tmp_path: Path) -> None:
    first, again = measured(tmp_path / "1"), measured(tmp_path / "2", scatter=0.6, repeats=3)
    assert words(first, again)["difference"].word == "open"
    assert judge(conclusions(first, again)) == "undecided"


def test_another_main_finding_is_another_conclusion(tmp_path: Path) -> None:
    first = measured(tmp_path / "1")
    made = tree(repeats=4)
    other = replace(made.variants[0], code="launch-bound", loading=0.02)
    again = compare(replace(made, variants=[other, made.variants[1]]).write(tmp_path / "2"))
    row = words(first, again)["finding"]
    assert (row.original, row.again, row.word) == ("dataloader-bound", "launch-bound", "contradicted")


def test_another_best_variant_that_is_as_fast_is_the_same(tmp_path: Path) -> None:
    def study(folder: Path, second: float, third: float) -> Comparison:
        made = tree(repeats=4)
        extra = [Variant({"batch_size": n}, step_us=t, loading=0.02) for n, t in ((33, second), (34, third))]
        return compare(replace(made, variants=[made.variants[0], *extra]).write(folder))

    first, again = study(tmp_path / "1", 100_000, 100_400), study(tmp_path / "2", 100_400, 100_000)
    assert first.answers[0].best.variant != again.answers[0].best.variant  # type: ignore[union-attr]
    row = words(first, again)["best"]
    assert row.word == "confirmed"
    assert row.again.endswith("(as fast)")


def test_a_best_variant_that_the_original_could_not_tell_contradicts_nothing(tmp_path: Path) -> None:
    first, again = measured(tmp_path / "1", scatter=0.6, repeats=3), measured(tmp_path / "2")
    rows = words(first, again)
    assert (first.answers[0].best, rows["best"].word) == (None, "nothing to confirm")
    assert judge(list(rows.values())) == "same"


def test_an_order_that_is_reversed_is_told(tmp_path: Path) -> None:
    def study(folder: Path, second: float, third: float) -> Comparison:
        made = tree(repeats=4)
        extra = [Variant({"batch_size": n}, step_us=t, loading=0.02) for n, t in ((33, second), (34, third))]
        return compare(replace(made, variants=[made.variants[0], *extra]).write(folder))

    first, again = study(tmp_path / "1", 90_000, 140_000), study(tmp_path / "2", 140_000, 90_000)
    row = words(first, again)["order"]
    assert (row.original, row.word) == ("batch_size=33 before batch_size=34", "contradicted")


def test_a_variant_that_was_not_measured_leaves_its_conclusion_open(tmp_path: Path) -> None:
    first = measured(tmp_path / "1")
    made = tree(repeats=4)
    again = compare(replace(made, variants=made.variants[:1]).write(tmp_path / "2"))
    assert words(first, again)["difference"].word == "open"


@pytest.mark.parametrize(
    ("original", "again", "word"),
    [
        ("faster", "faster", "confirmed"),
        ("faster", "slower", "contradicted"),
        ("faster", "no difference", "contradicted"),
        ("no difference", "faster", "contradicted"),
        ("faster", "unclear", "open"),
        ("no difference", None, "open"),
        ("unclear", "faster", "nothing to confirm"),
        (None, "slower", "nothing to confirm"),
        ("helped", "made it worse", "contradicted"),
    ],
)
def test_what_a_second_verdict_says_of_the_first(original: str | None, again: str | None, word: str) -> None:
    assert compared(original, again) == word
