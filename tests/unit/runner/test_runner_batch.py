"""A batch of runs: what is kept, tried again, given up, and taken over by a newer job."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tracelock.errors import TracelockError
from tracelock.io import schema
from tracelock.runner import identity
from tracelock.runner.batch import Batch, work_through

# Stands for run_workload.py: writes run.json, or does what a file beside the plan says of its variant.
PROGRAM = """
import argparse, json, pathlib, sys, time
parser = argparse.ArgumentParser()
for name in ("spec", "repeat", "output", "check", "token"):
    parser.add_argument("--" + name)
given = parser.parse_args()
folder = pathlib.Path(given.output)
folder.mkdir(parents=True, exist_ok=True)
with (folder / "calls").open("a") as calls:
    calls.write(given.token + "\\n")
spec = json.loads(pathlib.Path(given.spec).read_text())
exec(spec["do"])
(folder / "run.json").write_text(
    json.dumps({"schema": "tracelock/run/1", "digest": spec["digest"], "token": given.token})
)
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Write a plan of two variants, two repeats, in two environments; return its folder."""
    (tmp_path / "program.py").write_text(PROGRAM)
    runs = [
        {"environment": environment, "variant": variant, "repeat": repeat, "order": 0}
        for repeat in (1, 2)
        for environment in ("one", "two")
        for variant in ("a", "b")
    ]
    for order, run in enumerate(runs):
        run["order"] = order
    variants = [{"id": name, "digest": f"digest-{name}"} for name in ("a", "b")]
    plan = {"schema": schema("plan"), "variants": variants, "runs": runs}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    for environment in ("one", "two"):
        for name in ("a", "b"):
            say(tmp_path, name, "pass", environment)
    return tmp_path


def say(study: Path, variant: str, code: str, environment: str = "one") -> None:
    spec = study / "runs" / environment / variant / "spec.json"
    spec.parent.mkdir(parents=True, exist_ok=True)
    spec.write_text(json.dumps({"digest": f"digest-{variant}", "do": code}))


def batch(study: Path, attempt: int = 1, orders: tuple[int, int] | None = None, code: str = "code") -> Batch:
    return Batch(study / "plan.json", "one", orders, study / "check.json", study / "program.py", code, attempt)


def calls(study: Path, variant: str, repeat: int) -> int:
    file = study / "runs" / "one" / variant / str(repeat) / "calls"
    return len(file.read_text().splitlines()) if file.exists() else 0


def made(study: Path) -> dict[tuple[str, int], int]:
    return {(variant, repeat): calls(study, variant, repeat) for variant in "ab" for repeat in (1, 2)}


def test_it_makes_the_runs_of_its_environment_and_says_what_became_of_each(study: Path) -> None:
    work_through(batch(study), study / "done.json", lambda _: None)
    assert set(made(study).values()) == {1}
    assert not (study / "runs" / "two" / "a" / "1").exists()
    document = json.loads((study / "done.json").read_text())
    assert document["schema"] == "tracelock/batch/1"
    assert [(run["variant"], run["repeat"], run["outcome"]) for run in document["runs"]] == [
        ("a", 1, "made"),
        ("b", 1, "made"),
        ("a", 2, "made"),
        ("b", 2, "made"),
    ]


def test_orders_choose_its_part(study: Path) -> None:
    work_through(batch(study, orders=(1, 4)), study / "done.json", lambda _: None)
    assert made(study) == {("a", 1): 0, ("b", 1): 1, ("a", 2): 1, ("b", 2): 0}


def test_what_is_there_is_kept_unless_its_settings_or_programs_changed(study: Path) -> None:
    work_through(batch(study), study / "done.json", lambda _: None)
    work_through(batch(study), study / "done.json", lambda _: None)
    assert set(made(study).values()) == {1}
    work_through(batch(study, code="other"), study / "done.json", lambda _: None)
    assert set(made(study).values()) == {2}
    plan = json.loads((study / "plan.json").read_text())
    plan["variants"][1]["digest"] = "changed"
    (study / "plan.json").write_text(json.dumps(plan))
    say(study, "b", "spec['digest'] = 'changed'")
    work_through(batch(study, code="other"), study / "done.json", lambda _: None)
    assert made(study) == {("a", 1): 2, ("b", 1): 3, ("a", 2): 2, ("b", 2): 3}


def test_a_failed_run_leaves_the_others_and_fails_the_batch_at_its_end(study: Path) -> None:
    say(study, "a", "sys.exit(3)")
    with pytest.raises(TracelockError, match=r"2 of 4 runs failed: a \(1\), a \(2\)") as caught:
        work_through(batch(study), study / "done.json", lambda _: None)
    assert caught.value.exit_code == 1
    assert not (study / "done.json").exists()
    assert set(made(study).values()) == {1}
    say(study, "a", "pass")
    work_through(batch(study, attempt=2), study / "done.json", lambda _: None)
    assert made(study) == {("a", 1): 2, ("b", 1): 1, ("a", 2): 2, ("b", 2): 1}


def test_a_run_that_its_own_code_ended_is_not_tried_again_in_a_further_attempt(study: Path) -> None:
    fails = "(folder / 'failure.json').write_text(json.dumps({'cause': CAUSE})); sys.exit(1)"
    say(study, "a", fails.replace("CAUSE", "'user-code'"))
    say(study, "b", fails.replace("CAUSE", "'out-of-memory'"))
    for attempt in (1, 2):
        with pytest.raises(TracelockError):
            work_through(batch(study, attempt=attempt), study / "done.json", lambda _: None)
    assert made(study) == {("a", 1): 1, ("b", 1): 2, ("a", 2): 1, ("b", 2): 2}


def start(study: Path) -> subprocess.Popen[bytes]:
    program = Path(__file__).parents[3] / "scripts" / "run_batch.py"
    names = {"plan": "plan.json", "check": "check.json", "output": "done.json", "program": "program.py"}
    options = [word for name, file in names.items() for word in (f"--{name}", str(study / file))]
    return subprocess.Popen([sys.executable, str(program), "--environment", "one", "--code", "code", *options])


def until(what: object, seconds: float = 60) -> None:
    limit = time.monotonic() + seconds
    while not what():  # type: ignore[operator]
        assert time.monotonic() < limit
        time.sleep(0.02)


def test_an_older_job_ends_before_its_next_run_when_a_newer_one_has_the_batch(study: Path) -> None:
    say(
        study,
        "a",
        f"open({str(study / 'here')!r}, 'w').close()\n"
        f"while not pathlib.Path({str(study / 'go')!r}).exists(): time.sleep(0.02)",
    )
    older = start(study)
    until((study / "here").exists)
    (study / ".done.json.claim").write_text("a newer job")
    (study / "go").touch()
    assert older.wait(60) == 1
    assert made(study) == {("a", 1): 1, ("b", 1): 0, ("a", 2): 0, ("b", 2): 0}
    assert not (study / "done.json").exists()


def test_a_signal_ends_the_run_in_progress_too(study: Path) -> None:
    say(study, "a", f"open({str(study / 'here')!r}, 'w').write(str(__import__('os').getpid()))\ntime.sleep(600)")
    job = start(study)
    until(lambda: (study / "here").exists() and (study / "here").read_text())
    job.send_signal(signal.SIGTERM)
    assert job.wait(60) == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(int((study / "here").read_text()), 0)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux tells a child that its parent has ended")
def test_a_run_ends_with_a_batch_that_is_killed(study: Path) -> None:
    say(study, "a", f"open({str(study / 'here')!r}, 'w').write(str(__import__('os').getpid()))\ntime.sleep(600)")
    job = start(study)
    until(lambda: (study / "here").exists() and (study / "here").read_text())
    run = int((study / "here").read_text())
    job.kill()
    job.wait()
    until(lambda: identity.start_ticks(run) is None)
    assert made(study) == {("a", 1): 1, ("b", 1): 0, ("a", 2): 0, ("b", 2): 0}
