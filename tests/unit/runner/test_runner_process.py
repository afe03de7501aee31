"""What concerns the process of a run: signals, output, cores, memory, seeds."""

from __future__ import annotations

import os
import queue
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tracelock.runner import process
from tracelock.runner.process import (
    OverdueError,
    Stopped,
    output_to,
    overdue_after,
    peak_rss_bytes,
    seed_everything,
    stoppable,
    usable_cores,
)


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Put back the dispositions, whatever this process has inherited (nohup, jobs in the background)."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_end_is_an_exception_once(number: signal.Signals) -> None:
    def work() -> None:
        with stoppable():
            try:
                os.kill(os.getpid(), number)
                time.sleep(5)
            finally:
                os.kill(os.getpid(), number)  # tidying up goes on

    def other(*_: object) -> None: ...

    signal.signal(number, other)
    with pytest.raises(Stopped) as caught:
        work()
    assert caught.value.number == number
    assert str(caught.value) == f"stopped by {number.name}"
    assert signal.getsignal(number) is other


def test_what_the_caller_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stoppable():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_step_that_hangs_is_broken_off() -> None:
    began = time.monotonic()
    with pytest.raises(OverdueError, match="has not ended"), overdue_after(0.1):
        queue.Queue().get()
    assert time.monotonic() - began < 5
    with overdue_after(0.05):
        pass
    time.sleep(0.1)  # nothing rings afterwards
    with overdue_after(None):
        assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_everything_that_is_printed_goes_to_the_log_that_of_children_too(tmp_path: Path) -> None:
    code = (
        "import os, subprocess, sys; from pathlib import Path; from tracelock.runner.process import output_to\n"
        "print('before')\n"
        "with output_to(Path('log')) as outside:\n"
        "    print('python'); os.write(2, b'system\\n'); subprocess.run(['echo', 'child'])\n"
        "    print('told', file=outside)\n"
        "print('after')"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(process.__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("before\nafter\n", "told\n")
    assert sorted((tmp_path / "log").read_text().split()) == ["child", "python", "system"]


def test_output_comes_back_after_a_failure(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), output_to(tmp_path / "log"):
        os.write(1, b"%d\n" % (1 // 0))
    os.write(1, b"outside\n")
    assert capfd.readouterr().out == "outside\n"


@pytest.mark.parametrize(
    ("quota", "cores"), [("max 100000", 6), ("150000 100000", 1), ("400000 100000", 4), ("1000 100000", 1), ("", 6)]
)
def test_cores_are_bounded_by_affinity_and_quota(
    quota: str, cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpu.max").write_text(quota)
    monkeypatch.setattr(process, "Path", lambda _: tmp_path / "cpu.max")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    assert usable_cores() == cores


def test_peak_memory_is_that_of_this_process() -> None:
    before = peak_rss_bytes()
    assert before > 50e6  # torch alone
    block = bytearray(os.urandom(1)) * 400_000_000
    after = peak_rss_bytes()
    del block
    assert after > 350e6
    assert peak_rss_bytes() == pytest.approx(after, rel=0.01)  # the kernel counts in batches
    code = "from tracelock.runner.process import peak_rss_bytes; print(peak_rss_bytes())"
    environment = {**os.environ, "PYTHONPATH": str(Path(process.__file__).parents[2])}
    child = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert int(child.stdout) < 100e6  # ru_maxrss would still hold this process's peak


def test_all_generators_are_seeded() -> None:
    numpy = pytest.importorskip("numpy")
    drawn = []
    for seed in (2**32 + 3, 2**32 + 3, 4):
        seed_everything(seed)
        drawn.append((random.random(), torch.rand(1).item(), numpy.random.rand()))
    assert drawn[0] == drawn[1]
    assert all(one != other for one, other in zip(drawn[0], drawn[2], strict=True))
