"""Limits: documented, in range, and read with all problems at once."""

from __future__ import annotations

import pytest

from tracelock.diagnosis.rule import all_rules
from tracelock.diagnosis.thresholds import Thresholds, limits, read_thresholds
from tracelock.errors import TracelockError


def test_every_limit_has_a_unit_a_reason_and_a_default_in_range() -> None:
    for limit in limits():
        assert limit.metadata["unit"], limit.name
        assert len(limit.metadata["reason"]) > 20, limit.name
        assert 0 <= limit.default <= limit.metadata["high"], limit.name


def test_rules_name_limits_that_exist_and_each_is_found_by_its_code() -> None:
    names = {limit.name for limit in limits()}
    codes = [rule.code for rule in all_rules()]
    assert codes == sorted(set(codes))
    for rule in all_rules():
        assert set(rule.thresholds) <= names, rule.code
        assert set(rule.explains) <= set(codes), rule.code


def test_some_are_changed_and_the_others_kept() -> None:
    assert read_thresholds({"dataloader_share": 0.2}) == Thresholds(dataloader_share=0.2)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(TracelockError) as caught:
        read_thresholds({"dataloder_share": 0.1, "min_gain": 5, "busy_device": True}, "study.yaml: thresholds")
    first, second, third = (str(problem) for problem in caught.value.problems)
    assert first == ("study.yaml: thresholds.dataloder_share: is no threshold (did you mean 'dataloader_share'?)")
    assert second == "study.yaml: thresholds.min_gain: is 5, expected a number from 0 to 1 (share)"
    assert third == "study.yaml: thresholds.busy_device: is True, expected a number from 0 to 1 (share)"
