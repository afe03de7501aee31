"""Variants, their ids, and the order of runs."""

from __future__ import annotations

import itertools
import json
import string
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tracelock.study.model import Study
from tracelock.study.plan import interleave, make_plan, plan_document, spec
from tracelock.study.show import dropped_lines
from tracelock.study.variants import expand, variant_id

VALUES = st.one_of(
    st.booleans(), st.integers(-5, 5), st.text(max_size=8), st.floats(allow_nan=False, allow_infinity=False)
)
OVERRIDES = st.dictionaries(st.sampled_from(["a", "b", "c"]), VALUES, max_size=3)


def study(**keys) -> Study:
    return Study(name="s", file=Path("s.yaml"), workload="os:getcwd", baseline=keys.pop("baseline", {}), **keys)


@given(OVERRIDES)
def test_ids_are_safe_as_folder_names(overrides) -> None:
    identifier = variant_id(overrides)
    assert identifier
    assert set(identifier) <= set(string.ascii_letters + string.digits + "._+-=,~")
    assert len(identifier) <= 130


@given(OVERRIDES, OVERRIDES)
def test_different_overrides_never_share_a_folder(first, second) -> None:
    # A number and its text ("1" and 1) read the same: a setting has one kind, so they never meet in one study.
    if {name: _text(value) for name, value in first.items()} != {name: _text(value) for name, value in second.items()}:
        assert variant_id(first) != variant_id(second)


def _text(value) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def test_grid_is_the_product_baseline_first_and_each_once() -> None:
    variants, dropped = expand(study(baseline={"a": 2, "b": "x"}, factors={"a": [1, 2], "b": ["x", "y"]}), {})
    assert [variant.overrides for variant in variants] == [
        {"a": 2, "b": "x"},
        {"a": 1, "b": "x"},
        {"a": 1, "b": "y"},
        {"a": 2, "b": "y"},
    ]
    assert dropped == []


def test_a_listed_variant_starts_from_the_baseline() -> None:
    variants, _ = expand(study(baseline={"a": 1}, factors={"a": [1, 2]}, variants=({"b": 5},)), {"b": 0})
    assert variants[-1].settings == {"a": 1, "b": 5}


def test_settings_without_effect_do_not_make_a_second_variant() -> None:
    factors = {"num_workers": [0, 1], "persistent_workers": [False, True]}
    variants, dropped = expand(study(baseline={}, factors=factors), {"prefetch_factor": None})
    assert len(variants) == 3
    assert [item.reason for item in dropped] == ["measures the same as num_workers=0,persistent_workers=false"]


@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 4), st.integers(0, 99))
def test_every_run_is_there_once_and_repeats_follow_one_another(environments, variants, repeats, seed) -> None:
    names = tuple(f"e{n}" for n in range(environments))
    ids = [f"v{n}" for n in range(variants)]
    runs = interleave(names, ids, repeats, seed)
    expected = set(itertools.product(names, ids, range(1, repeats + 1)))
    assert {(run.environment, run.variant, run.repeat) for run in runs} == expected
    assert len(runs) == len(expected)
    assert [run.repeat for run in runs] == sorted(run.repeat for run in runs)
    assert [run.order for run in runs] == list(range(len(runs)))
    assert runs == interleave(names, ids, repeats, seed)


def test_adding_a_variant_leaves_the_others_digests_alone() -> None:
    small = make_plan(study(baseline={"a": 1}, factors={"a": [1, 2]}), {})
    large = make_plan(study(baseline={"a": 1}, factors={"a": [1, 2, 3]}), {})
    for variant in small.variants:
        assert spec(small, variant, "e") == spec(large, large.variant(variant.id), "e")


def test_thresholds_change_the_plan_but_no_measurement() -> None:
    plain = make_plan(study(baseline={"a": 1}), {})
    other = make_plan(study(baseline={"a": 1}, thresholds={"x": 1}), {})
    assert plan_document(plain)["digest"] != plan_document(other)["digest"]
    assert spec(plain, plain.baseline, "e") == spec(other, other.baseline, "e")


def test_what_needs_a_gpu_makes_no_variants_without_one_and_says_why() -> None:
    factors = {"pin_memory": [False, True], "amp": ["off", "fp16"], "batch_size": [8, 16]}
    defaults = {"num_workers": 0, "non_blocking": False}
    here = make_plan(study(baseline={"batch_size": 8}, factors=factors), defaults, gpu=False)
    assert [tuple(variant.overrides.values()) for variant in here.variants] == [(False, "off", 8), (False, "off", 16)]
    assert {(each.reason.split(" as ")[0], each.why) for each in here.dropped} == {
        ("measures the same", "pin_memory without effect: no GPU here"),
        ("cannot be run here", "amp=fp16 needs a GPU: none here"),
    }
    assert len(here.dropped) == 6
    assert len(make_plan(study(baseline={}, factors=factors), defaults, gpu=True).variants) == 8
    told = dropped_lines(here)
    assert told[0].startswith("not measured: 6 combinations")
    assert sorted(told[1:]) == [
        "  2 × pin_memory without effect: no GPU here",
        "  4 × amp=fp16 needs a GPU: none here",
    ]


def test_a_study_for_the_cpu_is_planned_alike_wherever_there_is_a_gpu() -> None:
    plans = [
        make_plan(study(baseline={}, device="cpu", factors={"pin_memory": [False, True]}), {}, gpu=gpu)
        for gpu in (False, True)
    ]
    assert plans[0] == plans[1]
    assert len(plans[0].variants) == 1
    assert dropped_lines(plans[0]) == [
        "not measured: pin_memory=true: measures the same as pin_memory=false (pin_memory without effect: no GPU here)"
    ]


def test_a_variant_of_a_machine_for_itself_is_another_measurement_and_the_usual_one_is_not() -> None:
    usual, alone = (make_plan(study(baseline={"a": 1}, exclusive=kind), {}) for kind in ("device", "machine"))
    assert "exclusive" not in spec(usual, usual.baseline, "e")
    assert spec(alone, alone.baseline, "e")["exclusive"] == "machine"
    assert plan_document(alone)["exclusive"] == "machine"
