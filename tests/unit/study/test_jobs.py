"""Jobs that a killed driver left are found by their folder and comment, and nobody else's are touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tracelock.errors import TracelockError
from tracelock.study.jobs import cancel_former, comment

SQUEUE = """#!/bin/sh
cat {folder}/queue
"""
SCANCEL = """#!/bin/sh
echo "$@" >> {folder}/cancelled
: > {folder}/queue
"""


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (("squeue", SQUEUE), ("scancel", SCANCEL)):
        program = tmp_path / name
        program.write_text(text.format(folder=tmp_path))
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    return tmp_path


def test_only_this_studys_jobs_in_this_folder_are_cancelled(queue: Path) -> None:
    mine = comment("measure_batch", "results/a", "default", "001")
    assert mine == "rule_measure_batch_wildcards_results_a_default_001"
    rows = [
        f"1|{queue}|{mine}",
        f"2|{queue}|{comment('measure_batch', 'results/a_b', 'default', '001')}",
        f"3|/elsewhere|{mine}",
        f"4|{queue}|something else",
        f"5|{queue}|{comment('analyze_batch', 'results/a', 'batches/default/001')}",
    ]
    (queue / "queue").write_text("\n".join(rows) + "\n")
    said: list[str] = []
    known = {mine, comment("analyze_batch", "results/a", "batches", "default", "001")}
    assert cancel_former(known, said.append, queue) == ["1", "5"]
    assert (queue / "cancelled").read_text().split() == ["1", "5"]
    assert "1, 5" in said[0]


def test_nothing_is_said_where_nothing_was_left(queue: Path) -> None:
    (queue / "queue").write_text("")
    assert cancel_former({"x"}, pytest.fail, queue) == []


def test_a_job_of_the_study_itself_cancels_nothing(queue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    (queue / "queue").write_text(f"1|{queue}|x\n")
    assert cancel_former({"x"}, pytest.fail, queue) == []


def test_a_machine_without_slurm_is_told_in_one_line(queue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (queue / "squeue").unlink()
    monkeypatch.setenv("PATH", str(queue))
    with pytest.raises(TracelockError, match="squeue: gives no answer"):
        cancel_former({"x"}, print, queue)
