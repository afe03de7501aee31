"""A real SLURM for all tests of this folder; without its packages, or root, they are skipped with the reason."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests_support import hear_signals

from slurm.single_host import SingleHost, call, why_not

WORKLOAD = """
import os
import time

import torch
from tracelock.runner.settings import Setting
from tracelock.runner.workload import Workload

SETTINGS = (
    Setting("size", "int", 1, "which variant it is"),
    Setting("pause_s", "float", 0.0, "seconds of waiting before the first step"),
    Setting("hold_mb", "int", 0, "memory to hold"),
)


def build(settings):
    held = bytearray(settings["hold_mb"] * 1_000_000 + 1)
    held[::4096] = b"1" * len(held[::4096])
    time.sleep(settings["pause_s"])
    data = [torch.ones(4, settings["size"]) for _ in range(50)]
    return Workload(loader=data, step=lambda batch: (batch.sum() + held[0]).item())
"""

STUDY = """
name: {name}
workload: {{build: "work.py:build", settings: {{pause_s: {pause_s}, hold_mb: {hold_mb}}}}}
device: cpu
threads: 1
baseline: {{size: 1}}
factors: {{size: {sizes}}}
repeats: {repeats}
timing: {{warmup_steps: 1, steps: 4}}
profiler: {{wait: 0, warmup: 1, active: 2}}
limits: {{max_duration_s: 60}}
cluster: {{cpus: 1, mem_mb: {mem_mb}, runs_per_job: {runs_per_job}, share: node}}
"""


@dataclass
class Sweep:
    """A study in a folder of its own, and the drivers that were started on it."""

    folder: Path
    root: Path
    name: str
    drivers: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def results(self) -> Path:
        return self.folder / "results" / self.name

    def start(self) -> subprocess.Popen[str]:
        """Start a driver as a user does; its output goes to a file."""
        command = [
            *(sys.executable, "-m", "tracelock.cli", "study", "run", f"{self.name}.yaml", "--slurm"),
            *("--slurm-init-seconds-before-status-checks", "2", "--latency-wait", "10"),
        ]
        with (self.folder / f"driver-{len(self.drivers)}.txt").open("w") as output:
            own = {"PYTHONPATH": str(self.root / "scripts"), "TRACELOCK_LOCK_DIR": str(self.folder / "locks")}
            environment = {**os.environ, **own, "NO_COLOR": "1"}
            driver = subprocess.Popen(
                command,
                cwd=self.folder,
                stdout=output,
                stderr=output,
                text=True,
                env=environment,
                process_group=0,
                preexec_fn=hear_signals,
            )
        self.drivers.append(driver)
        return driver

    def said(self, number: int = -1) -> str:
        """Return what a driver has printed."""
        number %= len(self.drivers)
        return (self.folder / f"driver-{number}.txt").read_text()

    def finish(self, driver: subprocess.Popen[str], seconds: float = 240) -> str:
        """Wait for a driver that is to succeed; return what it printed."""
        code = driver.wait(seconds)
        said = self.said(self.drivers.index(driver))
        log = self.results / "logs" / "snakemake.txt"
        assert code == 0, said + (log.read_text()[-6000:] if log.exists() else "")
        return said

    def jobs(self, state: str = "") -> list[str]:
        """Return the numbers of the study's jobs that have not ended."""
        states = ["-t", state] if state else []
        rows = call("squeue", "-h", "-o", "%A %Z", *states).splitlines()
        return [row.split()[0] for row in rows if row.endswith(f" {self.folder.resolve()}")]

    def runs(self) -> list[Path]:
        """Return the run.json that are there."""
        return sorted(self.results.glob("runs/*/*/*/run.json"))

    def until(self, what: Callable[[], object], seconds: float = 120) -> None:
        """Wait until something is so."""
        limit = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < limit, f"waited {seconds} s; {self.said()}"
            time.sleep(0.2)

    def stop(self) -> None:
        """End what a failed test left."""
        for driver in self.drivers:
            if driver.poll() is None:
                os.killpg(driver.pid, signal.SIGKILL)
                driver.wait()
        if jobs := self.jobs():
            call("scancel", "--full", *jobs, check=False)


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SingleHost]:
    """Bring up SLURM, once for all tests."""
    if reason := why_not():
        pytest.skip(f"no SLURM here: {reason}")
    host = SingleHost(tmp_path_factory.mktemp("slurm"))
    try:
        host.up()
        yield host
    finally:
        host.down()


@pytest.fixture
def sweep(slurm: SingleHost, tmp_path: Path, root: Path) -> Iterator[Callable[..., Sweep]]:
    """Return a maker of studies; what they left is ended afterwards."""
    made: list[Sweep] = []

    def make(name: str = "sweep", folder: Path | None = None, **given: object) -> Sweep:
        where = folder or tmp_path
        values = {"pause_s": 0, "hold_mb": 0, "sizes": "[1, 2]", "repeats": 2, "mem_mb": 1500, "runs_per_job": 2}
        (where / "work.py").write_text(WORKLOAD)
        (where / f"{name}.yaml").write_text(STUDY.format(name=name, **{**values, **given}))
        made.append(Sweep(where, root, name))
        return made[-1]

    yield make
    for one in made:
        one.stop()
    slurm.wait_for_nodes()
