"""The whole way with conda: from a lock to an environment, through the gate, to runs, a snapshot and its twin."""

from __future__ import annotations

import csv
import platform
from importlib.metadata import version
from pathlib import Path

import pytest

TORCH_ENVIRONMENT = ["python", "pytorch", "numpy", "pyyaml", "psutil"]


def test_a_study_in_a_locked_environment_and_its_restored_twin(make_project, tmp_path: Path) -> None:
    project = make_project("Projekt mit Umläuten äöü")
    project.add_environment("bench", TORCH_ENVIRONMENT)
    done = project.snakemake()
    assert done.returncode == 0, done.stdout + done.stderr

    check = project.read("results/study/envs/bench/check.json")
    assert (check["ok"], check["unlocked"], check["differences"]) == (True, False, [])
    prefix = Path((project.folder / "results/study/envs/bench/prefix.txt").read_text().strip())
    assert prefix.parent == project.conda_prefix
    assert not prefix.with_name(f"{prefix.name}.yaml").exists(), "built from the loose yaml"

    runs = [project.read(str(path)) for path in sorted(project.folder.glob("results/study/runs/bench/*/*/run.json"))]
    assert len(runs) == 2
    for run in runs:
        assert run["python"] == platform.python_version()
        assert run["torch"] == version("torch")
        assert run["timed"]["steps"] == 4
    analyses = list(project.folder.glob("results/study/runs/bench/*/*/analysis.json"))
    assert len(analyses) == 2
    assert project.read(str(analyses[0]))["step"]["count"] == 2
    with (project.folder / "results/study/tables/runs.csv").open(encoding="utf-8", newline="") as stream:
        assert {row["environment"] for row in csv.DictReader(stream)} == {"bench"}
    assert (project.folder / "results/study/report.html").is_file()

    snapshot = "results/study/envs/bench"
    text = (project.folder / snapshot / "environment.yml").read_text(encoding="utf-8")
    assert "prefix:" not in text
    assert str(tmp_path) not in text
    refused = project.tracelock("env", "restore", snapshot, "--prefix", "wieder da ü")
    assert refused.returncode == 2
    assert "name another folder, such as --prefix wieder-da-ü" in refused.stderr
    restored = project.tracelock("env", "restore", snapshot, "--prefix", "wieder-da-ü")
    assert restored.returncode == 0, restored.stderr
    same = project.tracelock("env", "diff", snapshot, "wieder-da-ü", "--exit-code")
    assert same.returncode == 0, same.stdout
    gate = project.tracelock("env", "gate", "wieder-da-ü", str(project.lock("bench")), "--deep")
    assert gate.returncode == 0, gate.stdout + gate.stderr
    assert check["digest"][:12] in gate.stdout
    started = project.run("wieder-da-ü/bin/python", "-c", "import torch; print(torch.ones(2).sum().item())")
    assert started.stdout.strip() == "2.0", started.stderr

    again = project.snakemake()
    assert "Nothing to be done" in again.stdout + again.stderr


@pytest.mark.parametrize("place", ["lock", "yaml"])
def test_a_changed_lock_or_yaml_is_told(make_project, place: str) -> None:
    project = make_project()
    project.add_environment("bench", ["python", "probe=1.0"])
    if place == "lock":
        pin = project.folder / "envs" / "bench.linux-64.pin.txt"
        pin.write_text("".join(pin.read_text().splitlines(keepends=True)[:-1]))
    else:
        spec = project.folder / "envs" / "bench.yaml"
        spec.write_text(spec.read_text() + "- pyyaml\n")
    told = project.tracelock("env", "check", "bench")
    assert told.returncode == 2
    assert "bench" in told.stderr


def test_a_mirror_serves_what_the_lock_names_and_nothing_else(make_project, channel) -> None:
    canonical = "https://conda.anaconda.org/tests"
    project = make_project(canonical=canonical, variables={"TRACELOCK_CHANNEL_MIRRORS": f"tests={channel.url}"})
    project.add_environment("bench", ["python", "probe=1.0"])
    done = project.snakemake("results/study/envs/bench/check.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert project.read("results/study/envs/bench/check.json")["ok"] is True
    snapshot = project.folder / "results/study/envs/bench"
    # What was built from a mirror is told so that it can be built without it, and still from it.
    for name in ("environment.yml", "explicit.txt", "packages.json"):
        text = (snapshot / name).read_text()
        assert channel.url not in text
        assert "tests" in text
    restored = project.tracelock("env", "restore", str(snapshot), "--prefix", "restored")
    assert restored.returncode == 0, restored.stderr
    same = project.tracelock("env", "diff", "restored", str(project.lock("bench")), "--exit-code")
    assert same.returncode == 0, same.stdout
