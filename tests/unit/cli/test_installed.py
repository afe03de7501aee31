"""An installed package, away from any checkout: it brings its workflow, and `init` writes a sound study."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

TREES = ("scripts", "workflow", "config", "envs", "requirements")
PROGRAM = """
import sys
sys.prefix, folder = sys.argv[1], sys.argv[2]
sys.path.insert(0, folder)
import tracelock
from pathlib import Path
from tracelock.study import place
assert Path(tracelock.__file__).is_relative_to(folder), tracelock.__file__
assert place.ROOT == Path(sys.prefix, "share", "tracelock") and not place.IN_CHECKOUT, place.ROOT
from tracelock.study.load import load_plan
from tracelock.study.starting import start
plan = load_plan(start(Path(sys.argv[3]), "mine")[0])
print(len(plan.variants), plan.study.allow_unlocked)
from tracelock.study.drive import run_study
from rich.console import Console
run_study(Path(sys.argv[3], "mine.yaml"), "results", None, ["--use-conda"], Console())
"""


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel, built from a copy: building leaves files beside the sources."""
    copy = tmp_path_factory.mktemp("source")
    junk = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    for name in TREES:
        shutil.copytree(root / name, copy / name, ignore=junk)
    for name in ("pyproject.toml", "README.md", "LICENSE", "Snakefile", "conda-lock.yml"):
        shutil.copyfile(root / name, copy / name)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index", "."]
    done = subprocess.run([*command, "-w", "dist"], cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return next((copy / "dist").glob("*.whl"))


def test_it_brings_every_file_of_the_workflow_and_every_program(root: Path, wheel: Path) -> None:
    names = {name.partition(".data/data/share/tracelock/")[2] for name in zipfile.ZipFile(wheel).namelist()}
    kept = [path for path in (root / "workflow").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    wanted = {path.relative_to(root).as_posix() for path in (*kept, *(root / "scripts").glob("*.py"))}
    assert wanted | {"Snakefile"} <= names


def test_a_study_is_written_and_planned_from_an_installation(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    data = next((tmp_path / "site").glob("*.data")) / "data"
    shutil.move(data, tmp_path / "prefix")
    (tmp_path / "work").mkdir()
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "prefix"), str(tmp_path / "site"), str(tmp_path / "work")]
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[:1] == ["2 True"], done.stderr
    assert "--use-conda: needs the programs beside the package" in done.stderr
