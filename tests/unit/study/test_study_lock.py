"""One process runs a study: who else starts it is told who does; what was killed leaves no lock; failures are told."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tracelock.errors import TracelockError
from tracelock.runner import identity
from tracelock.study import lock
from tracelock.study.failures import failure_report, stops_study

HOLDER = """
    import sys, time
    from pathlib import Path
    from tracelock.study.lock import take_study
    take_study(sys.argv[1], Path(sys.argv[2]))
    print("held", flush=True)
    time.sleep(60)
"""


def start(base: Path, driver: str | None = None) -> subprocess.Popen[str]:
    """Start a process that holds the lock of a study."""
    variables = {**os.environ, "PYTHONPATH": str(Path(lock.__file__).parents[2])}
    variables.pop(identity.DRIVER_VARIABLE, None)
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLDER), str(base), str(base.parent / "locks")],
        env=variables | ({identity.DRIVER_VARIABLE: driver} if driver else {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    """Kill a process, and wait for it."""
    process.kill()
    process.communicate()


def test_a_study_that_runs_is_refused_with_who_runs_it_and_a_dead_ones_lock_is_none(tmp_path: Path) -> None:
    base = tmp_path / "results" / "mine"
    process = start(base)
    with pytest.raises(TracelockError) as caught:
        lock.await_study(str(base))
    text = str(caught.value)
    assert f"{base}: this study is being run by pid {process.pid} of study mine, since 20" in text
    assert text.endswith(f"(wait for its end, or end it: kill {process.pid})")
    assert caught.value.exit_code == 1
    end(process)
    lock.await_study(str(base))
    end(start(base))


def test_what_a_killed_start_left_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = tmp_path / "mine"
    gone = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    driver = identity.driver_text(identity.describe(gone.pid))
    assert identity.driver_alive(driver) is True
    process = start(base, driver)
    gone.communicate(b"\n")
    assert identity.driver_alive(driver) is False
    said: list[str] = []
    monkeypatch.setattr(lock.time, "sleep", lambda _: end(process))
    lock.await_study(str(base), said.append)
    assert said == [f"waiting for the end of what a killed start left: pid {process.pid}"]


def test_snakemakes_lock_files_of_this_study_alone_are_removed(tmp_path: Path) -> None:
    base = tmp_path / "results" / "mine"
    folder = base.parent / "locks"
    folder.mkdir(parents=True)
    (folder / "0.input.lock").write_text(f"{base}/plan.json\nother\n")
    (folder / "0.output.lock").write_text(f"{base}-2/plan.json\n")
    end(start(base))
    assert [path.name for path in folder.iterdir()] == ["0.output.lock"]


def test_a_job_of_a_batch_system_does_not_end_with_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = identity.driver_text({**identity.describe(), "start_ticks": 1})
    assert identity.driver_alive(driver) is False
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert identity.driver_alive(driver) is None
    assert identity.driver_alive("nonsense") is None


def test_a_pid_that_was_given_to_another_process_is_not_alive() -> None:
    mine = identity.describe()
    assert identity.is_alive(mine) is True
    assert identity.is_alive({**mine, "start_ticks": mine["start_ticks"] + 1}) is False
    assert identity.is_alive({**mine, "boot": "another"}) is False
    assert identity.is_alive({**mine, "host": "another"}) is None
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert identity.start_ticks(child) is None  # a zombie has ended
    os.waitpid(child, 0)


def failed(**changes: Any) -> dict[str, Any]:
    """Return what a failure.json holds."""
    base = {
        "cause": "user-code",
        "what": "no data",
        "exception": "ValueError",
        "where": {"file": "mine.py", "line": 7, "function": "build"},
        "signal": None,
        "before_steps": True,
        "same": "a",
        "variant": "n=1",
        "repeat": 1,
        "path": "results/mine/log.txt",
    }
    return {**base, **changes}


@pytest.mark.parametrize(
    ("failures", "done", "stops"),
    [
        ([failed()], 0, False),
        ([failed(), failed(variant="n=2")], 0, True),
        ([failed(), failed(variant="n=2")], 1, False),
        ([failed(), failed(same="b")], 0, False),
        ([failed(before_steps=False), failed(before_steps=False)], 0, False),
        ([failed(cause="signal"), failed(cause="signal")], 0, False),
    ],
)
def test_a_study_stops_when_its_first_two_runs_fail_alike_before_a_step(
    failures: list[dict[str, Any]], done: int, stops: bool
) -> None:
    assert stops_study(failures, done) is stops


def test_every_cause_is_told_once_with_its_runs() -> None:
    other = failed(same="b", cause="signal", exception=None, what="ended by SIGKILL", where=None, variant="n=3")
    lines = failure_report([failed(), other, failed(repeat=2)])
    assert lines == [
        "failed: n=1 (1), n=1 (2)",
        "  exception in the workload's code: ValueError: no data at mine.py:7",
        "  log: results/mine/log.txt",
        "failed: n=3 (1)",
        "  ended by a signal: ended by SIGKILL",
        "  log: results/mine/log.txt",
    ]


def test_a_lock_that_cannot_be_written_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = tmp_path / "study"
    lock.lock_file(str(base)).write_text("")

    def read_only(_: Path) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(lock, "claim", read_only)
    with pytest.raises(TracelockError, match=r"\.study\.lock: cannot be written: Read-only file system") as caught:
        lock.await_study(str(base))
    assert caught.value.exit_code == 1
