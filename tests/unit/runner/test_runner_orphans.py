"""Loading processes end with their run whenever it is killed, between fork and their first line, too."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from runner_support import environment

from tracelock.runner import orphans
from tracelock.runner.lease import lease_device

# The hook runs before anything of multiprocessing's in the child: the parent is dead before the child's first line.
KILLED_AT_FORK = """
    import multiprocessing, os, signal, sys, time
    from tracelock.runner import orphans
    from tracelock.runner.lease import lease_device
    held = lease_device("cpu", print)
    if sys.argv[1] == "bound":
        orphans.bind_loading_processes()
    parent = os.getpid()
    def orphan():
        os.write(1, f"{os.getpid()}\\n".encode())
        os.kill(parent, signal.SIGKILL)
        while os.getppid() == parent:
            time.sleep(0.001)
    os.register_at_fork(after_in_child=orphan)
    multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,)).start()
    time.sleep(60)
"""
# Killed while its child works.
KILLED_LATER = """
    import multiprocessing, os, sys, time
    from tracelock.runner import orphans
    if sys.argv[1] == "bound":
        orphans.bind_loading_processes()
    process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    process.start()
    time.sleep(0.5)
    print(process.pid, flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")
@pytest.mark.parametrize("code", [KILLED_AT_FORK, KILLED_LATER], ids=["between fork and first line", "later"])
@pytest.mark.parametrize("how", ["bound", "as torch alone"])
def test_a_loading_process_ends_with_its_run_and_holds_nothing(tmp_path: Path, code: str, how: str) -> None:
    scripts = str(Path(orphans.__file__).parents[2])
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), how],
        env={**environment(tmp_path / "locks"), "PYTHONPATH": scripts},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    child = int(process.stdout.readline())
    process.kill()
    process.wait()
    process.stdout.close()
    began = time.monotonic()
    try:
        lease_device("cpu", print).release()  # free in both cases: the lease is not the child's
        assert time.monotonic() - began < 5
        assert ended_within(child, 5) is (how == "bound")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def ended_within(pid: int, seconds: float) -> bool:
    """Wait for the end of somebody else's process; a zombie has ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False
