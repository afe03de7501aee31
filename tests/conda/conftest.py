"""A channel, a stand-in for conda, and copies of the project: made once a session, in about ten seconds."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conda_channel import (
    PYTHON_PIN,
    SITE,
    SUBDIR,
    Content,
    closure,
    distribution_content,
    python_content,
    write_channel,
)
from conda_project import Channel, Project, install_standin, serve
from filelock import FileLock

# What the workload needs, and what all other rules do.
BENCH = ("torch", "numpy", "pyyaml", "psutil")
ANALYSIS = ("numpy", "pandas", "matplotlib", "scipy", "jinja2", "pyyaml", "rich", "typer", "msgspec", "psutil")
STUDY = """\
name: study
workload:
  build: tracelock.runner.workloads.mlp:build
  settings: {{batch_size: 8}}
environments: [{environment}]
baseline: {{num_workers: 0}}
variants: []
repeats: 2
timing: {{warmup_steps: 1, steps: 4}}
profiler: {{wait: 0, warmup: 1, active: 2}}
limits: {{max_duration_s: 60}}
remedies: {{test: false}}
"""

MakeProject = Callable[..., Project]


def probe(version: str) -> Content:
    """Return a tiny Python package of which the channel has two versions."""
    name = f"{SITE}/tracelock_probe-{version}.dist-info"
    files: dict[str, Path | bytes] = {
        f"{SITE}/tracelock_probe.py": f"VERSION = '{version}'\n".encode(),
        f"{name}/METADATA": f"Metadata-Version: 2.1\nName: tracelock-probe\nVersion: {version}\n".encode(),
        f"{name}/INSTALLER": b"conda\n",
        f"{name}/RECORD": f"tracelock_probe.py,,\ntracelock_probe-{version}.dist-info/METADATA,,\n".encode(),
    }
    return Content("probe", version, "0", (PYTHON_PIN,), files)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.workflow)
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder that all processes of a test session share."""
    base, alone = tmp_path_factory.getbasetemp(), "PYTEST_XDIST_WORKER" not in os.environ
    folder = (base if alone else base.parent) / "conda"
    folder.mkdir(exist_ok=True)
    yield folder
    if alone:  # pytest keeps the folders of three sessions, and this one is large
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def built_channel(shared_folder: Path) -> Channel:
    """Return the channel, built by the first process that needs it."""
    if SUBDIR != "linux-64":
        pytest.skip(f"the project's locks are for linux-64, this machine is {SUBDIR}")
    folder, index = shared_folder / "channel", shared_folder / "channel.json"
    with FileLock(shared_folder / "channel.lock"):
        if not index.exists():
            names = sorted({*closure(BENCH), *closure(ANALYSIS)})
            contents = [python_content(), probe("1.0"), probe("2.0"), *map(distribution_content, names)]
            index.write_text(json.dumps(write_channel(folder, contents)))
    return Channel(folder, json.loads(index.read_text()))


@pytest.fixture(scope="session")
def channel(built_channel: Channel) -> Iterator[Channel]:
    """Return the channel, served on loopback by this process."""
    yield from serve(built_channel)


@pytest.fixture(scope="session")
def standin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the root of an installation of the stand-in for conda."""
    folder = tmp_path_factory.mktemp("installed")
    yield install_standin(folder / "conda")
    shutil.rmtree(folder)


@pytest.fixture
def make_project(tmp_path: Path, channel: Channel, standin: Path) -> Iterator[MakeProject]:
    """Return a function that copies the project, with an environment for the analysis and one for the workload."""

    def make(folder: str = "project", environment: str = "bench", **options: Any) -> Project:
        options = {"channel": channel, "standin": standin, "conda_prefix": tmp_path / "environments", **options}
        project = Project(tmp_path / folder, **options)
        project.add_environment(
            "analysis", ["python", *(("matplotlib-base" if n == "matplotlib" else n) for n in ANALYSIS)]
        )
        (project.folder / "study.yaml").write_text(STUDY.format(environment=environment))
        projects.append(project)
        return project

    projects: list[Project] = []
    yield make
    for project in projects:
        restored = [meta.parent for meta in project.folder.glob("*/conda-meta")]
        for prefix in (project.conda_prefix, *restored):
            shutil.rmtree(prefix, ignore_errors=True)


@pytest.fixture(autouse=True)
def quiet_umask() -> Iterator[None]:
    """Keep files of the environments writable for the tests that change them."""
    old = os.umask(0o022)
    yield
    os.umask(old)
