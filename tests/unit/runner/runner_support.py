"""Specs for tests, and the program as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

TINY = Path(__file__).parent / "tiny_workload.py"
PROGRAM = Path(__file__).parents[3] / "scripts" / "run_workload.py"


def make_spec(folder: Path, **changes: Any) -> Path:
    """Write a spec.json of the tiny workload, with sections updated by `changes`, and return its path."""
    document: dict[str, Any] = {
        "schema": "tracelock/spec/1",
        "experiment": "tiny",
        "environment": "driver",
        "variant": "num_workers=0",
        "digest": "ab12",
        "baseline": True,
        "workload": f"{TINY}:build",
        "settings": {"batch_size": 4, "threads": 1},
        "device": "cpu",
        "seed": 7,
        "timing": {"warmup_steps": 2, "steps": 6},
        "profiler": {"wait": 1, "warmup": 1, "active": 2, "repeat": 1},
        "limits": {"max_duration_s": 120, "max_steps": None, "max_trace_mb": 50},
    }
    for key, value in changes.items():
        document[key] = {**document[key], **value} if isinstance(value, dict) else value
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "spec.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def read(folder: Path) -> dict[str, Any]:
    """Return the run.json of a folder."""
    return json.loads((folder / "run.json").read_text())  # type: ignore[no-any-return]


def visible(folder: Path) -> set[str]:
    """Return the names of a run's files, the claim of the newest attempt apart."""
    return {path.name for path in folder.iterdir() if path.name != ".attempt"}


def environment(locks: Path) -> dict[str, str]:
    """Return this process's environment with a lock folder apart from the machine's real one."""
    return {**os.environ, "TRACELOCK_LOCK_DIR": str(locks)}


def command(spec: Path, output: Path, *more: str, python: str = sys.executable) -> list[str]:
    """Return the command line of one run."""
    return [python, str(PROGRAM), "--spec", str(spec), "--repeat", "1", "--output", str(output), *more]


Program = Callable[..., "subprocess.CompletedProcess[str]"]
