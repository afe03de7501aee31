"""Runs that are killed, asked to end, overtaken by another attempt, or wait for each other."""

from __future__ import annotations

import gzip
import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from runner_support import Program, command, environment, make_spec, read, visible
from tests_support import hear_signals


def start(spec: Path, output: Path, locks: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(spec, output, *more),
        env=environment(locks),
        cwd=locks.parent,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_signals,
    )


def wait_until(condition: Any) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def check_whole(folder: Path) -> None:
    """Check that no file with a final name is a part of one."""
    names = visible(folder) if folder.exists() else set()
    if "run.json" in names:
        run = read(folder)
        assert run["schema"] == "tracelock/run/1"
        assert {"samples.csv", "log.txt", run["profiled"]["trace"]} <= names
    if "trace.json.gz" in names:
        with gzip.open(folder / "trace.json.gz", "rt") as stream:
            assert json.load(stream)["traceEvents"]
    assert {name for name in names if not name.startswith(".attempt-")} <= {
        "run.json",
        "samples.csv",
        "trace.json.gz",
        "log.txt",
        "failure.json",
    }


@pytest.mark.slow
def test_a_run_killed_at_any_moment_leaves_nothing_half_written(tmp_path: Path) -> None:
    spec = make_spec(tmp_path, settings={"num_workers": 1, "items": 8})
    out = tmp_path / "out"
    began = time.monotonic()
    start(spec, out, tmp_path / "locks").communicate(timeout=60)
    length = time.monotonic() - began
    chance = random.Random(1)
    for delay in [chance.uniform(0, length) for _ in range(4)] + [length * part for part in (0.85, 0.9, 0.95)]:
        process = start(spec, out, tmp_path / "locks")
        time.sleep(delay)
        process.kill()
        process.wait()
        process.stderr.close()  # type: ignore[union-attr]
        check_whole(out)
    process = start(spec, out, tmp_path / "locks")
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == 0, errors
    assert visible(out) == {"run.json", "samples.csv", "trace.json.gz", "log.txt"}


def test_a_run_that_is_killed_in_a_step_leaves_why_and_the_next_attempt_cleans_it(
    tmp_path: Path, program: Program
) -> None:
    out = tmp_path / "out"
    done = program(make_spec(tmp_path, settings={"kill_at": 4}), out)
    assert done.returncode == 1
    assert "ended by SIGKILL" in done.stderr
    assert visible(out) == {"failure.json", "log.txt"}
    failure = json.loads((out / "failure.json").read_text())
    assert (failure["cause"], failure["signal"], failure["phase"]) == ("signal", "SIGKILL", "measuring")
    assert program(make_spec(tmp_path), out).returncode == 0
    assert visible(out) == {"run.json", "samples.csv", "trace.json.gz", "log.txt"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_asked_to_end_tidies_up(number: signal.Signals, tmp_path: Path) -> None:
    out, said = tmp_path / "out", tmp_path / "said"
    spec = make_spec(
        tmp_path, settings={"sleep_s": 0.2, "announce": str(said), "num_workers": 1}, timing={"steps": 500}
    )
    process = start(spec, out, tmp_path / "locks")
    wait_until(said.exists)
    process.send_signal(number)
    errors = process.communicate(timeout=30)[1]
    assert process.returncode == 128 + number
    assert f"run_workload: stopped by {number.name}" in errors
    assert visible(out) == {"failure.json", "log.txt"}


def test_the_second_attempt_wins_and_the_first_one_fails(tmp_path: Path) -> None:
    out, said = tmp_path / "out", tmp_path / "said"
    slow = make_spec(tmp_path / "a", settings={"sleep_s": 0.1, "announce": str(said)}, timing={"steps": 15})
    first = start(slow, out, tmp_path / "locks", "--token", "first")
    wait_until(said.exists)
    second = start(make_spec(tmp_path / "b"), out, tmp_path / "locks", "--token", "second")
    errors = first.communicate(timeout=60)[1]
    assert first.returncode == 1
    assert "a newer attempt at this run has taken over" in errors
    errors = second.communicate(timeout=60)[1]
    assert second.returncode == 0, errors
    assert read(out)["token"] == "second"
    assert visible(out) == {"run.json", "samples.csv", "trace.json.gz", "log.txt"}


def test_two_runs_on_one_device_never_overlap(tmp_path: Path) -> None:
    logs = [tmp_path / name for name in "ab"]
    running = []
    for log in logs:
        spec = make_spec(tmp_path / f"spec {log.name}", settings={"sleep_s": 0.05, "announce": str(log)})
        running.append(start(spec, tmp_path / f"out {log.name}", tmp_path / "locks"))
    for process in running:
        errors = process.communicate(timeout=120)[1]
        assert process.returncode == 0, errors
    spans = sorted([float(line.split()[1]) for line in log.read_text().splitlines()] for log in logs)
    assert spans[0][-1] < spans[1][0]


def test_help_needs_neither_torch_nor_anything_else(tmp_path: Path) -> None:
    program = Path(command(tmp_path, tmp_path)[1])
    code = f"import sys; sys.modules['torch'] = None; sys.argv = ['x', '--help']; import runpy; sys.path.insert(0, {str(program.parent)!r}); runpy.run_path({str(program)!r}, run_name='__main__')"  # noqa: E501
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--spec" in done.stdout


def test_a_run_whose_words_nobody_reads_any_more_is_made_all_the_same(tmp_path: Path) -> None:
    process = start(make_spec(tmp_path), tmp_path / "out", tmp_path / "locks")
    process.stderr.close()  # type: ignore[union-attr]
    assert process.wait(120) == 0
    check_whole(tmp_path / "out")
    assert (tmp_path / "out" / "run.json").is_file()


def test_what_the_code_makes_of_a_signal_is_still_told_as_the_signal(tmp_path: Path) -> None:
    """A batch system ends every process of a job at once; what then breaks in the code is no fault of the code."""
    out, said = tmp_path / "out", tmp_path / "said"
    settings = {"sleep_s": 0.2, "announce": str(said), "rewords": True}
    process = start(make_spec(tmp_path, settings=settings, timing={"steps": 500}), out, tmp_path / "locks")
    wait_until(said.exists)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 1
    failure = json.loads((out / "failure.json").read_text())
    assert (failure["cause"], failure["signal"], failure["exception"]) == ("signal", "SIGTERM", "BrokenPipeError")
    assert "Broken pipe" in failure["what"]
