"""What is unclear where equal runs differ much is laid to the machine's noise."""

from __future__ import annotations

from pathlib import Path

import pytest
from study_tree import StudyTree, Variant

from tracelock.study.compare import compare
from tracelock.study.overview import noise_text


@pytest.mark.parametrize(
    ("scatter", "faster", "verdict", "told"),
    [
        (0.25, 0.98, "unclear", True),
        (0.02, 0.98, "unclear", False),  # little noise, and a little difference
        (0.1, 0.2, "faster", False),  # nothing is unclear
    ],
)
def test_noise_is_told_where_something_is_unclear(
    tmp_path: Path, scatter: float, faster: float, verdict: str, told: bool
) -> None:
    variants = [Variant({"num_workers": count}, 1e5 * faster**count, scatter=scatter) for count in (0, 1)]
    found = compare(StudyTree(variants, seed=3).write(tmp_path))
    assert [row.verdict for row in found.comparisons] == [verdict]
    text = noise_text(found)
    assert bool(text) == told
    if told:
        times = [[run.step_us for run in found.runs if run.variant == case.variant] for case in found.cases]
        worst = max(max(each) / min(each) - 1 for each in times)
        assert text.startswith(f"Equal runs of one variant differ by up to {100 * worst:.0f} %: what is unclear")
