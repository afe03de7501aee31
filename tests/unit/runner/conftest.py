"""What the tests of the runner share: specs, and the program as a user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from runner_support import Program, command, environment


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Return a function that makes one run as a user does and returns the ended process."""

    def call(spec: Path, output: Path, *more: str, **options: Any) -> subprocess.CompletedProcess[str]:
        python = options.pop("python", sys.executable)
        return subprocess.run(
            command(spec, output, *more, python=python),
            env=environment(tmp_path / "locks"),
            cwd=options.pop("cwd", tmp_path),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return call


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep locks and thread variables of a test to itself."""
    monkeypatch.setenv("TRACELOCK_LOCK_DIR", str(tmp_path / "locks"))
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.setenv(name, "")  # so that it is put back even when the code under test sets it
        monkeypatch.delenv(name)
