"""The tables of settings, and what is said about values that they do not allow."""

from __future__ import annotations

import pytest

from tracelock.errors import TracelockError
from tracelock.runner.settings import STANDARD, Setting, Settings, check, defaults, resolve, table
from tracelock.runner.workloads.tables import BY_WORKLOAD

OWN = (
    Setting("collate", "str", "cat", "how", allowed=("cat", "stack")),
    Setting("batch_size", "int", 64, "n", minimum=1),
)


@pytest.mark.parametrize("own", [(), *BY_WORKLOAD.values()])
def test_defaults_are_themselves_allowed(own: tuple[Setting, ...]) -> None:
    assert check(defaults(own), own) == []
    assert all(setting.meaning for setting in own)


def test_the_standard_settings_are_those_of_the_contract() -> None:
    expected = (
        "batch_size num_workers pin_memory persistent_workers prefetch_factor drop_last non_blocking amp compile "
        "channels_last matmul_precision optimizer_foreach optimizer_fused threads cudnn_benchmark cuda_graph"
    )
    assert [setting.name for setting in STANDARD] == expected.split()


def test_all_problems_are_found_at_once_with_place_and_hint() -> None:
    given = {"batch_sizes": 8, "num_workers": -1, "amp": "fp8", "pin_memory": 1, "collate": "cat", "threads": 2.0}
    problems = [str(problem) for problem in check(given, OWN, "study.yaml: settings")]
    assert problems == [
        "study.yaml: settings.batch_sizes: is not a setting of this workload (did you mean 'batch_size'?)",
        "study.yaml: settings.num_workers: is -1, expected a whole number of at least 0",
        "study.yaml: settings.amp: is 'fp8', expected off or bf16 or fp16",
        "study.yaml: settings.pin_memory: is 1, expected true or false",
        "study.yaml: settings.threads: is 2.0, expected a whole number of at least 1 or null",
    ]


@pytest.mark.parametrize("value", [True, "2", None, 1.5, float("nan"), []])
def test_a_wrong_kind_is_never_a_whole_number(value: object) -> None:
    assert len(check({"batch_size": value})) == 1


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_json_cannot_hold_is_none(value: float) -> None:
    assert Setting("rate", "float", 0.1, "a rate").fault(value)


def test_a_minimum_is_itself_allowed() -> None:
    rate = Setting("rate", "float", 0.1, "a rate", minimum=0)
    assert rate.fault(-0.1)
    assert not rate.fault(0)
    assert not rate.fault(2)


def test_a_name_that_nothing_is_known_of_passes_only_where_the_workload_declares_nothing() -> None:
    assert check({"mine": 1}, None) == []
    assert len(check({"mine": 1}, ())) == 1


def test_a_bare_off_in_yaml_is_explained() -> None:
    assert "write 'off' in quotes" in str(check({"amp": False})[0])
    assert "expected off or bf16 or fp16" in str(check({"amp": True})[0])


@pytest.mark.parametrize(("name", "value"), [("persistent_workers", True), ("prefetch_factor", 4)])
def test_settings_of_workers_need_workers(name: str, value: object) -> None:
    assert "num_workers is 0" in str(check({name: value})[0])
    assert check({name: value, "num_workers": 1}) == []


def test_a_workloads_own_default_replaces_the_standard_one() -> None:
    assert resolve({}, OWN)["batch_size"] == 64
    assert table(OWN)["batch_size"].default == 64
    with pytest.raises(TracelockError, match="expected cat or stack"):
        resolve({"collate": "zip"}, OWN)


def test_settings_remember_what_was_read() -> None:
    settings = Settings({"batch_size": 8, "amp": "bf16", "compile": True, "pin_memory": False, "mine": 3})
    assert settings["amp"] == "bf16"
    assert "compile" in settings
    assert settings.unread() == ["batch_size", "compile", "mine"]
    assert dict(settings)["mine"] == 3
    assert settings.unread() == []


def test_an_unknown_setting_asked_for_names_the_nearest() -> None:
    with pytest.raises(TracelockError, match="did you mean 'batch_size'"):
        Settings({"batch_size": 8})["batchsize"]


def test_a_value_in_a_message_is_short_however_it_nests() -> None:
    value: object = "x"
    for _ in range(40):  # 9 ** 40 members when it is written out
        value = [value] * 9
    for wrong in (value, "y" * 100_000, {str(number): number for number in range(10_000)}):
        assert len(Setting("n", "int", 1, "").fault(wrong)) < 500
