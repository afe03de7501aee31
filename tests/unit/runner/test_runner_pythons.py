"""The runner inside other environments: Python 3.10, older PyTorch, and nothing but the standard library.

TRACELOCK_TEST_PYTHONS names interpreters that have torch, separated by ``:``; all three workloads are run in each.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from runner_support import Program, make_spec

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "scripts" / "run_workload.py"
RUNNER = ROOT / "scripts" / "tracelock" / "runner"
SOURCES = [PROGRAM, *RUNNER.rglob("*.py"), *(RUNNER.parent / name for name in ("errors.py", "io.py"))]
OPTIONAL = {"PIL", "psutil", "pynvml", "sitecustomize"}
SETTINGS: dict[str, dict[str, Any]] = {
    "images": {"images": 32, "image_size": 64, "crop_size": 32, "batch_size": 8},
    "mlp": {"records": 256, "item_cost": 2, "collate": "stack"},
    "transformer": {"sequences": 64, "length": 16, "width": 32, "batch_size": 8, "layers": 1},
}


def works(python: str) -> bool:
    """Return whether an interpreter runs: pyenv's program on the path may belong to no chosen version."""
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def oldest() -> str:
    """Return an interpreter of Python 3.10 from the path or from pyenv."""
    installed = map(str, sorted(Path("~/.pyenv/versions").expanduser().glob("3.10*/bin/python")))
    found = next((path for path in (shutil.which("python3.10"), *installed) if path and works(path)), None)
    if found is None:
        pytest.skip("no python3.10 on the path or below ~/.pyenv/versions")
    return found


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_sources_keep_to_the_syntax_of_python_3_10(source: Path) -> None:
    ast.parse(source.read_text(encoding="utf-8"), feature_version=(3, 10))


def test_the_runner_imports_the_standard_library_torch_and_itself() -> None:
    allowed = {*sys.stdlib_module_names, "torch", "tracelock", *OPTIONAL}
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                assert name.partition(".")[0] in allowed, f"{source}: {name}"
                inside = ("tracelock.runner", "tracelock.io", "tracelock.errors")
                assert not name.startswith("tracelock.") or name.startswith(inside), f"{source}: {name}"


def test_python_3_10_compiles_the_runner_and_imports_what_needs_no_torch(oldest: str, tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\n"
        "for path in sys.argv[2:]: compile(pathlib.Path(path).read_text(encoding='utf-8'), path, 'exec')\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "import tracelock.runner.run, tracelock.runner.lease, tracelock.runner.sampler, tracelock.runner.gpu_probes\n"
        "import tracelock.runner.workloads.tables, tracelock.runner.workloads.jpegs\n"
        "print(sys.version_info[:2], tracelock.runner.process.usable_cores() > 0)\n"
    )
    command = [oldest, "-W", "error", "-c", code, str(ROOT / "scripts"), *map(str, SOURCES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "(3, 10) True\n"


def test_python_3_10_explains_the_program_and_refuses_a_bad_spec(oldest: str, tmp_path: Path, program: Program) -> None:
    done = subprocess.run([oldest, str(PROGRAM), "--help"], capture_output=True, text=True, check=False)
    assert "--spec" in done.stdout, done.stderr
    done = program(make_spec(tmp_path, device="tpu"), tmp_path / "out", python=oldest)
    assert done.returncode == 2
    assert "device: is 'tpu', expected auto or cpu or cuda" in done.stderr


def test_an_environment_without_torch_says_so_in_one_line(oldest: str, tmp_path: Path, program: Program) -> None:
    if subprocess.run([oldest, "-c", "import torch"], capture_output=True, check=False).returncode == 0:
        pytest.skip("this python3.10 has torch")
    done = program(make_spec(tmp_path), tmp_path / "out", python=oldest)
    assert done.returncode == 1
    assert done.stderr.startswith("run_workload: error: the run failed: ModuleNotFoundError: No module named 'torch'")
    assert done.stderr.count("\n") == 1


def others() -> list[str]:
    return [path for path in os.environ.get("TRACELOCK_TEST_PYTHONS", "").split(":") if path]


@pytest.mark.slow
@pytest.mark.parametrize("workload", SETTINGS)
@pytest.mark.parametrize("python", others() or [None])
def test_all_workloads_run_in_other_environments(
    python: str | None, workload: str, tmp_path: Path, program: Program
) -> None:
    if python is None:
        pytest.skip("TRACELOCK_TEST_PYTHONS names no interpreter with torch")
    losses = []
    for name, workers in (("a", 0), ("b", 2)):
        spec = make_spec(
            tmp_path / name,
            workload=f"tracelock.runner.workloads.{workload}:build",
            settings={**SETTINGS[workload], "num_workers": workers, "persistent_workers": workers > 0},
            profiler={"active": 2, "record_shapes": True, "profile_memory": True, "with_stack": True},
        )
        done = program(spec, tmp_path / name, "--tensorboard", python=python)
        assert done.returncode == 0, done.stderr
        run = json.loads((tmp_path / name / "run.json").read_text())
        assert run["timed"]["steps"] == 6
        assert run["profiled"]["steps"] == 2
        assert run["warnings"] == []
        losses.append(run["timed"]["loss"])
    # Where items hold no chance, loading processes change nothing but the time.
    assert workload == "images" or losses[0] == losses[1]
