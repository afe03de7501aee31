"""What every command line is expected to have."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tracelock
from tracelock.cli import _common_options

ROOT = Path(__file__).resolve().parents[3]
TRACE = (
    '{"traceEvents": [{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 1, '
    '"dur": 100}, {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 2, "dur": 90}]}'
)


def tool(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from tracelock.cli import main; main()", *words]
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "scripts"), **environment}
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)


def test_version_and_completion() -> None:
    done = tool("--version")
    assert (done.returncode, done.stdout.strip()) == (0, tracelock.__version__)
    words = tool(_TRACELOCK_COMPLETE="complete_bash", COMP_WORDS="tracelock comp", COMP_CWORD="1").stdout.split()
    assert words == ["compare"]


def test_quiet_is_the_answer_alone(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    file.write_text(TRACE, encoding="utf-8")
    for words in (["--quiet", "analyze", str(file)], ["analyze", str(file), "--quiet"]):
        done = tool(*words)
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) == 1
    assert len(tool("analyze", str(file)).stdout.splitlines()) > 3


def test_two_traces_that_are_no_ranks_say_how_to_compare_them(tmp_path: Path) -> None:
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file in files:
        file.write_text(TRACE, encoding="utf-8")
    assert "tracelock compare A B" in tool("analyze", *map(str, files)).stderr


@pytest.mark.parametrize(
    ("words", "kept", "common"),
    [
        (["analyze", "--quiet", "x"], ["analyze", "x"], ["--quiet"]),
        (["profile", "--debug", "--", "train.py", "--quiet"], ["profile", "--", "train.py", "--quiet"], ["--debug"]),
    ],
)
def test_options_of_somebody_else_are_left_alone(words: list[str], kept: list[str], common: list[str]) -> None:
    assert _common_options(words) == (kept, common)


def test_the_page_of_the_api_names_what_is_there_and_its_examples_compile() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for name in tracelock.__all__:
        assert f"`{name}" in page
        assert getattr(tracelock, name) is not None
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        compile(code, "docs/api.md", "exec")


def test_a_study_as_frames(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    from study_tree import demo_tree

    folder = demo_tree(repeats=2).write(tmp_path)
    study = tracelock.load_study(folder)
    assert isinstance(study.runs, pandas.DataFrame)
    assert len(study.runs) == 20
    assert set(study.variants["variant"]) == {case.variant for case in study.comparison.cases}
    assert study.comparisons["ratio"].between(0.3, 1.2).all()
