"""Workloads are found by module or file; what is wrong with a name is said with the nearest right one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracelock.errors import TracelockError
from tracelock.runner.find import build_workload, find_workload
from tracelock.runner.settings import Settings
from tracelock.runner.workload import Workload


@pytest.fixture(autouse=True)
def _modules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Put the modules and the path back as they were, and work in an empty folder."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    yield
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def test_a_file_is_found_with_its_neighbours_and_its_settings(tmp_path: Path) -> None:
    folder = tmp_path / "my code"
    folder.mkdir()
    (folder / "neighbour_of_mine.py").write_text("VALUE = 3\n")
    (folder / "train-it.v2.py").write_text(
        "import neighbour_of_mine\n\n\ndef build(s):\n    return neighbour_of_mine.VALUE\n"
    )
    build, own = find_workload("my code/train-it.v2.py:build", "w")
    assert build(Settings({})) == 3
    assert own is None


def test_a_module_of_the_working_folder_is_found(tmp_path: Path) -> None:
    (tmp_path / "work_of_mine.py").write_text("SETTINGS = ()\ndef build(s): ...\n")
    assert find_workload("work_of_mine:build", "w")[1] == ()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("build", "expected module:function or path/file.py:function"),
        ("module:", "expected module:function"),
        (":build", "expected module:function"),
        ("trian.py:build", r"there is no file trian.py below .*did you mean 'train.py'"),
        ("train.py:biuld", r"has no function 'biuld'.*did you mean 'build'"),
        ("train.py:NUMBER", "has no function 'NUMBER'"),
        ("json.py:build", "name of a module in use"),
        ("trian:build", "no module 'trian'.*did you mean 'train'"),
        ("tracelock.runner.workloads.image:build", "did you mean 'tracelock.runner.workloads.images'"),
        ("nothing.like.it:build", "with us come tracelock.runner.workloads.images"),
    ],
)
def test_what_is_wrong_with_a_name_is_said(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "train.py").write_text("NUMBER = 1\ndef build(s): ...\n")
    (tmp_path / "json.py").write_text("def build(s): ...\n")
    with pytest.raises(TracelockError, match=says) as caught:
        find_workload(name, "spec.json: workload")
    assert caught.value.exit_code == 2
    assert str(caught.value).startswith("spec.json: workload: ")


@pytest.mark.parametrize("name", ["broken:build", "broken.py:build"])
def test_a_module_that_misses_another_one_is_not_called_missing_itself(tmp_path: Path, name: str) -> None:
    (tmp_path / "broken.py").write_text("import absent_module_x\n")
    with pytest.raises(ModuleNotFoundError, match="absent_module_x"):
        find_workload(name, "w")


def test_what_build_returns_is_checked() -> None:
    settings = Settings({})
    with pytest.raises(TracelockError, match="returned NoneType, expected tracelock"):
        build_workload(lambda _: None, settings, "w")
    with pytest.raises(TracelockError) as caught:
        build_workload(lambda _: Workload(loader=3, step="x"), settings, "w")  # type: ignore[arg-type]
    assert len(caught.value.problems) == 2
