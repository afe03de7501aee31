"""A study's run of a command: what its own threads are, when it is ended, and what is said of one that is too short."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from scripts_support import CASES

from tracelock.errors import TracelockError
from tracelock.runner.command.study_run import fill_command
from tracelock.runner.process import OWN_THREADS, note_thread_variables, restore_thread_variables
from tracelock.runner.spec import Spec, read_spec

HANGS = """
import time, torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2000):
    model(torch.randn(2, 4)).sum().backward()
    optimizer.step()
    if step == {at}:
        time.sleep(600)
"""


def _spec(folder: Path, command: list[str], limit_s: float | None = None) -> Spec:
    document: dict[str, Any] = {
        "schema": "tracelock/spec/1",
        "experiment": "limits",
        "environment": "default",
        "variant": "base",
        "workload": "none",
        "settings": {},
        "command": command,
        "timing": {"warmup_steps": 2, "steps": 5},
        "profiler": {"active": 2},
        **({} if limit_s is None else {"limits": {"max_duration_s": limit_s}}),
    }
    (folder / "spec.json").write_text(json.dumps(document))
    return read_spec(folder / "spec.json")


def _run(folder: Path, spec: Spec) -> dict[str, Any]:
    work = folder / "work"
    fill_command(spec, {}, {}, work, lambda _: None)
    return dict(json.loads((work / "run.json").read_text()))


def test_a_script_that_is_too_short_is_told_by_its_numbers(tmp_path: Path) -> None:
    spec = _spec(tmp_path, [sys.executable, str(CASES / "plain.py"), "--epochs", "1", "--batches", "2"])
    with pytest.raises(TracelockError, match=r"made 2 steps, too few for 2 steps of warm-up, 5 timed and 2 recorded"):
        _run(tmp_path, spec)


@pytest.mark.parametrize("at", [4])
def test_a_script_that_stands_still_is_ended(at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracelock.runner.command.study_run.silence_of", lambda _: 3.0)
    (tmp_path / "hangs.py").write_text(HANGS.format(at=at))
    with pytest.raises(TracelockError, match=r"was ended: no step ended for \d+ s"):
        _run(tmp_path, _spec(tmp_path, [sys.executable, str(tmp_path / "hangs.py")]))


def test_one_that_does_not_end_after_its_window_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracelock.runner.command.study_run.LEAVING_S", 2.0)
    (tmp_path / "hangs.py").write_text(f"import atexit, time\natexit.register(time.sleep, 600)\n{HANGS.format(at=-1)}")
    run = _run(tmp_path, _spec(tmp_path, [sys.executable, str(tmp_path / "hangs.py")], 120.0))
    assert run["timed"]["steps"] == 5
    assert any("after its window" in warning for warning in run["warnings"])


def test_a_script_keeps_the_thread_variables_of_the_person_who_started_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", OWN_THREADS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    note_thread_variables()
    monkeypatch.setenv("OMP_NUM_THREADS", "16")  # as Snakemake does
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "16")
    note_thread_variables()  # in a job: what was noted first counts
    restore_thread_variables()
    assert (os.environ["OMP_NUM_THREADS"], "OPENBLAS_NUM_THREADS" in os.environ) == ("3", False)
    assert OWN_THREADS not in os.environ
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    restore_thread_variables()  # nobody noted anything
    assert os.environ["OMP_NUM_THREADS"] == "5"
