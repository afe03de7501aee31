"""Measures a study of an archive again: its environment built and checked, then the same protocol."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tracelock.bundle.opened import Opened
from tracelock.envs.diff import compare_manifests
from tracelock.envs.installed import read_installed
from tracelock.envs.manifest import Manifest, read_snapshot, snapshot_content
from tracelock.envs.restore import restore
from tracelock.errors import EXIT_FAILED, Problem, TracelockError
from tracelock.io import file_digest, write_text
from tracelock.study.place import ROOT, SCRIPTS
from tracelock.study.source import read_yaml

_OURS = ("pip", "setuptools", "tracelock")  # what a venv has beside its lock, and we ourselves


@dataclass(frozen=True)
class Request:
    """How to measure again.

    Parameters
    ----------
    runs
        Repeats in place of the study's; None for as many.
    device
        Device in place of the study's.
    here
        Use the environment that tracelock runs in, whatever it holds; results are marked then.
    """

    runs: int | None = None
    device: str | None = None
    here: bool = False


@dataclass(frozen=True)
class Built:
    """An environment to measure in: `conda` where Snakemake builds it, `locked` where it must be the archive's."""

    python: Path
    project: Path
    conda: bool = False
    locked: bool = True
    notes: tuple[str, ...] = ()


def build_environment(opened: Opened, folder: Path, request: Request, say: Callable[[str], None]) -> Built:
    """Return an environment like that of the original, built below `folder` unless this one is the same.

    Raises
    ------
    TracelockError
        If it cannot be built, with how to go on.
    """
    names = opened.document.environments
    kinds = {name: snapshot_content(opened.results / "envs" / name / "packages.json")[0] for name in names}
    if request.here:
        return Built(
            Path(sys.executable), ROOT, locked=False, notes=("measured in the environment of this tracelock, as asked",)
        )
    if "conda" in kinds.values():
        return Built(Path(sys.executable), _project(opened, folder / "project"), conda=True)
    snapshot = opened.results / "envs" / names[0]
    differing = _differing(snapshot)
    if not differing:
        say("the environment of this tracelock is that of the archive, package by package")
        return Built(Path(sys.executable), ROOT)
    say(f"building the environment: {len(differing)} packages differ here, {', '.join(differing[:5])} first")
    try:
        restored = restore(snapshot, folder / "environment")
    except TracelockError as error:
        hint = Problem(
            "", "to measure in the environment of this tracelock instead, add --here; results are marked then"
        )
        raise TracelockError([*error.problems, hint], EXIT_FAILED) from None
    notes = tuple(f"left out: {problem}" for problem in restored.left_out if problem.where != "tracelock")
    return Built(restored.prefix / "bin" / "python", ROOT, notes=notes)


def _differing(snapshot: Path) -> list[str]:
    """Return the packages in which this environment differs from a snapshot, what matters for speed first."""
    there = read_snapshot(snapshot / "packages.json")
    installed = read_installed(Path(sys.prefix))
    here = Manifest("prefix", str(installed.prefix), installed.packages, installed.python)
    changes = compare_manifests(there, here)
    return [change.name for change in changes if change.name not in _OURS and change.what != "hash"]


def _project(opened: Opened, folder: Path) -> Path:
    """Return a project whose environments are those of the archive: ours where the locks are the same."""
    files = sorted((opened.folder / "environments" / "envs").glob("*"))
    if all((ROOT / "envs" / f.name).is_file() and file_digest(ROOT / "envs" / f.name) == file_digest(f) for f in files):
        return ROOT
    for name in ("scripts", "workflow", "requirements", "envs"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("Snakefile", "conda-lock.yml"):
        shutil.copyfile(ROOT / name, folder / name)
    for file in files:
        shutil.copyfile(file, folder / "envs" / file.name)
    return folder


def place_study(opened: Opened, target: Path, request: Request) -> Path:
    """Copy study file and code into `target` and return the study file, changed as far as was asked for.

    Raises
    ------
    TracelockError
        If the archive holds no study file.
    """
    name = opened.document.study_file
    if name is None:
        what = "holds no study file, so its runs cannot be repeated"
        raise TracelockError(Problem(str(opened.folder), what, "--analysis-only works without it"))
    shutil.copytree(opened.folder / "study", target, dirs_exist_ok=True)
    file = target / Path(name).relative_to("study")
    changes: dict[str, Any] = {}
    if request.runs is not None:
        changes["repeats"] = request.runs
    if request.device is not None:
        changes["device"] = request.device
    if request.here:
        changes["allow_unlocked"] = True
    if changes:
        value = read_yaml(file).value
        write_text(file, yaml.safe_dump({**value, **changes}, sort_keys=False, allow_unicode=True))
    return file


def measure(opened: Opened, file: Path, target: Path, built: Built) -> Path:
    """Run the study in `target` and return its results folder.

    Raises
    ------
    TracelockError
        If it did not finish; what it said has been shown.
    """
    command = [str(built.python), "-m", "tracelock.cli", "study", "run", file.relative_to(target).as_posix()]
    command += ["--use-conda"] if built.conda else []
    scripts = built.project / "scripts" if built.project != ROOT else SCRIPTS
    environment = {**os.environ, "PYTHONPATH": str(scripts), "PYTHONNOUSERSITE": "1"}
    lock = opened.results / "envs" / opened.document.environments[0] / "explicit.txt"
    if not built.conda and built.locked and lock.is_file():
        environment["TRACELOCK_ENVIRONMENT_LOCK"] = str(lock.resolve())
    code = subprocess.run(command, cwd=target, env=environment, check=False).returncode
    results = target / "results" / opened.document.study
    if code or not (results / "comparison.json").is_file():
        raise TracelockError(Problem(str(target), "the study did not finish; what it said stands above"), EXIT_FAILED)
    return results
