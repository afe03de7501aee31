"""The programs of the workflow's last steps, as Snakemake calls them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from study_tree import StudyTree, Variant

# What the pinned environment of these steps lacks: importing it fails, as it would there.
ABSENT = ("jsonschema", "isal", "snakemake", "torch", "duckdb", "hypothesis")


START = f"""
import runpy, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {ABSENT!r}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
del sys.argv[0]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def call(root: Path, program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", START, str(root / "scripts" / program), *map(str, arguments)]
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.parametrize("program", ["compare.py", "figures.py", "report.py"])
def test_help_says_what_a_program_does(root: Path, program: str) -> None:
    done = call(root, program, "--help")
    assert done.returncode == 0, done.stderr
    assert "--results DIR" in done.stdout


def test_three_programs_make_a_report_from_runs(root: Path, tmp_path: Path) -> None:
    folder = StudyTree([Variant({"num_workers": 0}, loading=0.4), Variant({"num_workers": 1})]).write(tmp_path / "ü b")
    for program, arguments in (
        ("compare.py", ()),
        ("figures.py", ("--output", folder / "figures")),
        ("report.py", ("--output", folder / "report.html")),
    ):
        done = call(root, program, "--results", folder, *arguments)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (folder / "tables" / "findings.csv").is_file()
    assert (folder / "figures" / "memory.svg").is_file()
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("program", "line"),
    [
        ("compare.py", "holds no plan.json, so it is no results folder (give results/<experiment>)"),
        ("figures.py", "comparison.json: cannot be read: No such file or directory"),
        ("report.py", "comparison.json: cannot be read: No such file or directory"),
    ],
)
def test_an_empty_folder_is_one_clear_line(root: Path, tmp_path: Path, program: str, line: str) -> None:
    done = call(root, program, "--results", tmp_path)
    assert done.returncode == 2
    assert line in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_smallest_effect_is_respected(root: Path, tmp_path: Path) -> None:
    folder = StudyTree([Variant({"a": 0}, 100_000.0), Variant({"a": 1}, 80_000.0)]).write(tmp_path)
    verdicts = []
    for effect in ("0.02", "0.5"):
        assert call(root, "compare.py", "--results", folder, "--min-effect", effect).returncode == 0
        verdicts.append("faster" in (folder / "tables" / "comparisons.csv").read_text(encoding="utf-8"))
    assert verdicts == [True, False]
