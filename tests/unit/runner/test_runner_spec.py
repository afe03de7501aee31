"""spec.json: what is read from it, and everything that is said of a wrong one at once."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from runner_support import make_spec

from tracelock.errors import TracelockError
from tracelock.runner.protocol import Limits, Timing
from tracelock.runner.spec import read_spec


def test_a_spec_is_read_with_the_defaults_of_what_it_leaves_out(tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    document = {
        "schema": "tracelock/spec/1",
        "experiment": "e",
        "environment": "driver",
        "variant": "v",
        "workload": "m:build",
        "settings": {"num_workers": 2},
        "profiler": {"active": 5, "repeat": 2},
    }
    path.write_text(json.dumps(document))
    spec = read_spec(path)
    assert spec.timing == Timing(warmup_steps=3, steps=20)
    assert spec.limits == Limits(300.0, 100_000, 200.0)
    assert (spec.profiler.cycle, spec.profiler.steps) == (7, 14)
    assert (spec.device, spec.seed, spec.settings) == ("auto", 0, {"num_workers": 2})
    assert spec.spec_digest == hashlib.sha256(path.read_bytes()).hexdigest()


def test_every_problem_is_reported_at_once(tmp_path: Path) -> None:
    path = make_spec(
        tmp_path,
        workload="",
        device="gpu",
        sead=3,
        settings={"batch_size": "many", "num_workers": 0, "persistent_workers": False},
        timing={"steps": 0, "warmup": 1},
        profiler={"active": True},
        limits={"max_duration": 3},
    )
    with pytest.raises(TracelockError) as caught:
        read_spec(path)
    found = {str(problem).removeprefix(f"{path}: ") for problem in caught.value.problems}
    assert caught.value.exit_code == 2
    assert found == {
        "device: is 'gpu', expected auto or cpu or cuda",
        "sead: is an unknown key (did you mean 'seed'?)",
        "workload: is missing",
        "timing.steps: is 0, expected a whole number of at least 1",
        "timing.warmup: is an unknown key (did you mean 'warmup_steps'?)",
        "profiler.active: is True, expected a whole number of at least 1",
        "limits.max_duration: is an unknown key (did you mean 'max_duration_s'?)",
        "settings.batch_size: is 'many', expected a whole number of at least 1",
    }


@pytest.mark.parametrize(
    ("key", "value"), [("settings", []), ("settings", None), ("timing", 3), ("limits", "none"), ("profiler", [1])]
)
def test_a_section_of_the_wrong_kind_is_a_problem_not_a_crash(tmp_path: Path, key: str, value: object) -> None:
    with pytest.raises(TracelockError, match=f"{key}: is .*expected a mapping"):
        read_spec(make_spec(tmp_path, **{key: value}))


def test_a_bound_that_leaves_no_step_to_time_is_a_problem(tmp_path: Path) -> None:
    assert read_spec(make_spec(tmp_path, limits={"max_steps": 5})).limits.max_steps == 5
    with pytest.raises(TracelockError, match=r"limits\.max_steps: is 4, but the profiler alone takes 4 steps"):
        read_spec(make_spec(tmp_path, limits={"max_steps": 4}))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"schema": "tracelock/run/1"}', "\x00"])
def test_a_file_that_is_no_spec_says_so(tmp_path: Path, text: str) -> None:
    path = tmp_path / "spec.json"
    path.write_text(text)
    with pytest.raises(TracelockError, match=r"is not JSON|has schema"):
        read_spec(path)
    with pytest.raises(TracelockError, match="cannot be read"):
        read_spec(tmp_path / "absent.json")
