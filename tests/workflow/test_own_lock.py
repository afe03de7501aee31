"""Without conda a study runs in the environment of its driver; somebody's own lock can stand for it."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import pytest

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

CHECK = "results/tiny/envs/default/check.json"


def test_the_drivers_environment_is_held_against_its_owners_lock(snakemake, tiny: Path, monkeypatch) -> None:
    lock = tiny.with_name("my locks.txt")
    lock.write_text(f"torch=={version('torch')}\nnumpy=={version('numpy')}\n")
    monkeypatch.setenv("TRACELOCK_ENVIRONMENT_LOCK", lock.name)
    snakemake(CHECK)
    check = json.loads((tiny.parent / CHECK).read_text(encoding="utf-8"))
    assert (check["ok"], [entry["file"] for entry in check["locks"]]) == (True, ["my locks.txt"])

    lock.write_text(f"torch=={version('torch')}\nnumpy==1.0\n")
    stopped = snakemake(CHECK, "--forcerun", "environment", check=False)
    assert stopped.returncode == 1
    assert "default: is not what its lock says: 1 difference" in stopped.stderr
