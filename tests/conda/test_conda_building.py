"""Environments are whole or not there: two workflows on one folder, and a builder that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conda_project import Project

ENVIRONMENT = ["python", "probe=1.0", "numpy", "pyyaml", "sympy"]


def start(project: Project, *command: str) -> subprocess.Popen[str]:
    """Start a program in the project's folder, in a process group of its own."""
    return subprocess.Popen(
        command, cwd=project.folder, env=project.environment(), text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def prepare(project: Project) -> list[str]:
    """Return the project's own way of creating all environments first."""
    program = [sys.executable, "scripts/prepare_envs.py", "--conda-prefix", str(project.conda_prefix), "--"]
    return [*program, "--snakefile", "Snakefile", "--config", "study=study.yaml"]


def whole(project: Project) -> None:
    """Check every file of the environment for the workload."""
    done = project.snakemake("results/study/envs/bench/check.json")
    assert done.returncode == 0, done.stdout + done.stderr
    prefix = (project.folder / "results/study/envs/bench/prefix.txt").read_text().strip()
    gate = project.tracelock("env", "gate", prefix, str(project.lock("bench")), "--deep")
    assert gate.returncode == 0, gate.stdout + gate.stderr


def as_prepared(project: Project) -> list[str]:
    return prepare(project)


def as_typed(project: Project) -> list[str]:
    return project.command("results/study/envs/bench/check.json")


@pytest.mark.parametrize("way", [as_prepared, as_typed])
def test_two_workflows_build_one_environment_once(make_project, tmp_path: Path, way) -> None:
    projects = [make_project(name, conda_prefix=tmp_path / "shared by two") for name in ("one", "two")]
    for project in projects:
        project.add_environment("bench", ENVIRONMENT)
    processes = [start(project, *way(project)) for project in projects]
    said = [process.communicate(timeout=240)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], "\n".join(said)
    created = "\n".join(said).count("Creating conda environment")
    assert created == len(list(projects[0].conda_prefix.glob("*_/conda-meta"))) == 2, "\n".join(said)
    assert "Removing incomplete" not in "\n".join(said)
    for project in projects:
        whole(project)


@pytest.mark.parametrize("moment", ["first files", "half of the packages"])
def test_a_builder_that_was_killed_leaves_nothing_that_is_used(make_project, moment: str) -> None:
    project = make_project()
    project.add_environment("bench", ENVIRONMENT)
    with start(project, *prepare(project)) as process:
        deadline = time.monotonic() + 120
        while not reached(project, moment):
            assert process.poll() is None, f"over before it could be killed: {process.communicate()[0]}"
            assert time.monotonic() < deadline
            time.sleep(0.002)
        os.killpg(process.pid, signal.SIGKILL)
    again = project.run(*prepare(project))
    assert again.returncode == 0, again.stdout + again.stderr
    whole(project)


def reached(project: Project, moment: str) -> bool:
    """Return whether a creation has come so far."""
    if moment == "first files":
        return any(project.conda_prefix.glob("*_/*"))
    return len(list(project.conda_prefix.glob("*_/conda-meta/*.json"))) >= 2
