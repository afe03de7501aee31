"""Study files: what is right is planned, what is wrong is said, all at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracelock.errors import TracelockError
from tracelock.study.load import load_plan, load_study

WORKLOAD = """
from tracelock.runner.settings import Setting
SETTINGS = (
    Setting("size", "int", 8, "size", minimum=1),
    Setting("shape", "str", "cat", "shape", allowed=("cat", "stack")),
)
def build(settings):
    raise NotImplementedError
"""
GOOD = """
name: tiny
workload:
  build: work.py:build
  settings: {size: 4}
baseline: {num_workers: 0}
factors:
  num_workers: [0, 2]
  persistent_workers: [false, true]
exclude:
  - {num_workers: 0, persistent_workers: true}
repeats: 2
"""


@pytest.fixture
def write(tmp_path: Path):
    (tmp_path / "work.py").write_text(WORKLOAD, encoding="utf-8")

    def write_study(text: str) -> Path:
        file = tmp_path / "study.yaml"
        file.write_text(text, encoding="utf-8")
        return file

    return write_study


def problems_of(file: Path) -> list[str]:
    with pytest.raises(TracelockError) as caught:
        load_plan(file)
    assert caught.value.exit_code == 2
    return [str(problem).replace(str(file), "study.yaml") for problem in caught.value.problems]


def test_a_good_study_has_its_grid_less_the_exclusions(write) -> None:
    plan = load_plan(write(GOOD))
    assert [variant.id for variant in plan.variants] == [
        "num_workers=0,persistent_workers=false",
        "num_workers=2,persistent_workers=false",
        "num_workers=2,persistent_workers=true",
    ]
    assert plan.baseline.settings["num_workers"] == 0
    assert plan.baseline.settings["size"] == 4
    assert plan.baseline.settings["shape"] == "cat"  # the workload's own default
    assert len(plan.runs) == 3 * 2


def test_all_problems_are_said_at_once_each_with_place_and_nearest_spelling(write) -> None:
    text = GOOD.replace("repeats: 2", "repeets: 2").replace("name: tiny", "name: a/b") + "device: gpu\nseed: -1\n"
    assert problems_of(write(text)) == [
        "study.yaml:12: repeets: unknown key (did you mean 'repeats'?)",
        "study.yaml:13: device: is \"gpu\", expected one of auto, cpu, cuda (did you mean 'cpu'?)",
        'study.yaml:2: name: is "a/b", which has not the form expected'
        " (Name of the study; its results lie below results/<name>/.)",
        "study.yaml:14: seed: is -1, expected at least 0 (Seeds the order of the runs and every run.)",
    ]


def test_settings_are_checked_by_name_and_value_wherever_they_stand(write) -> None:
    text = GOOD.replace("num_workers: [0, 2]", "num_workers: [0, two]\n  batchsize: [8]").replace(
        "{size: 4}", "{size: 0}"
    )
    assert problems_of(write(text)) == [
        "study.yaml:5: workload.settings.size: is 0, expected a whole number of at least 1 (size)",
        "study.yaml:8: factors.num_workers[1]: is 'two', expected a whole number of at least 0"
        " (processes that load data; 0 loads in the training process)",
        "study.yaml:9: factors.batchsize[0]: is no setting of this workload (did you mean 'batch_size'?)",
    ]


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        ("nowhere.py:build", "names a file (relative to the study file) that does not exist: nowhere.py"),
        ("no.such.module:build", "names a module that does not exist: no.such.module"),
        ("work.py:biuld", "work.py has no function biuld (did you mean 'build'?)"),
    ],
)
def test_a_workload_that_is_not_there(write, build: str, expected: str) -> None:
    assert problems_of(write(GOOD.replace("work.py:build", build))) == [f"study.yaml:4: workload.build: {expected}"]


def test_an_exclusion_that_matches_nothing_is_a_mistake(write) -> None:
    text = GOOD.replace("{num_workers: 0, persistent_workers: true}", "{num_workers: 3, batch_size: 1}")
    assert problems_of(write(text)) == [
        "study.yaml:11: exclude[0].num_workers: is 3, which is none of the factor's values [0, 2]",
        "study.yaml:11: exclude[0].batch_size: is no factor of this study",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "study.yaml: is empty or no mapping; a study needs name, workload and baseline"),
        ("- a\n- b\n", "study.yaml: is empty or no mapping; a study needs name, workload and baseline"),
        ("name: [a\n", "study.yaml:2: is not YAML: expected ',' or ']', but got '<stream end>'"),
        ("name: a\nname: b\n", "study.yaml:2: name: stands twice in one mapping, first on line 1"),
    ],
)
def test_what_is_no_study(write, text: str, expected: str) -> None:
    assert problems_of(write(text)) == [expected]


def test_missing_keys_say_what_they_are_for(write) -> None:
    assert problems_of(write("name: a\n")) == [
        "study.yaml: workload: is missing (What is measured.)",
        "study.yaml: baseline: is missing (The factors' values that the other variants are compared with.)",
    ]


def test_an_absent_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TracelockError, match="cannot be read: No such file or directory"):
        load_study(tmp_path / "none.yaml")


def test_foreign_tags_are_refused(write) -> None:
    assert "is not YAML" in problems_of(write("name: !!python/object/apply:os.system [true]\n"))[0]


def test_mistakes_of_shape_names_and_values_are_told_in_one_pass(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(
        "name: bad\n"
        "workload:\n"
        "  build: tracelock.runner.workloads.mlp:biuld\n"
        "  settings: {batch_sise: 8}\n"
        "baseline: {num_workers: x}\n"
        "factors:\n"
        "  num_workers: [0, 1]\n"
        "  pin_memry: [true]\n"
        "  amp: []\n"
        "repeets: 2\n"
        "seed: x\n"
        "timing: {warmup_steps: -1, steps: 4}\n"
        "exclude: [{nothing: 1}]\n"
    )
    with pytest.raises(TracelockError) as caught:
        load_study(file)
    told = {str(problem).split(": ")[1] for problem in caught.value.problems}
    assert told == {
        "workload.build",
        "workload.settings.batch_sise",
        "baseline.num_workers",
        "factors.pin_memry[0]",
        "factors.amp",
        "repeets",
        "seed",
        "timing.warmup_steps",
        "exclude[0].nothing",
    }


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"name: a\ndescription: caf\xe9 au lait\n", "study.yaml:2: is not UTF-8: byte 0xe9; read as Latin-1 it says: "
         "description: caf\u00e9 au lait (save it as UTF-8: iconv -f latin1 -t utf-8 study.yaml > utf8-study.yaml)"),
        ("name: a\n".encode("utf-16"), "study.yaml:1: is not UTF-8: the first bytes are the mark of UTF-16 "
         "(save it as UTF-8: iconv -f utf-16 -t utf-8 study.yaml > utf8-study.yaml)"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_utf8_says_where_and_how_to_save_it(tmp_path: Path, data: bytes, told: str) -> None:
    file = tmp_path / "study.yaml"
    file.write_bytes(data)
    assert problems_of(file) == [told]


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (b"# coding: latin-1\n# caf\xe9\ndef build(settings): ...\n", None),
        (b"x = 'caf\xe9'\ndef build(settings): ...\n", "names a file that Python cannot read: "),
        (b"def build(settings): ...\n\0", "names a file that Python cannot read: "),
        (b"def build(settings:\n", "names a file that Python cannot read: "),
    ],
)
def test_a_workload_file_is_read_as_python_reads_it(write, tmp_path: Path, code: bytes, told: str | None) -> None:
    file = write("name: a\nworkload: {build: 'work.py:build'}\nbaseline: {}\n")
    (tmp_path / "work.py").write_bytes(code)
    if told is None:
        assert len(load_plan(file).runs) == 3
        return
    (problem,) = problems_of(file)
    assert problem.startswith(f"study.yaml:2: workload.build: {told}{tmp_path / 'work.py'}: ")
