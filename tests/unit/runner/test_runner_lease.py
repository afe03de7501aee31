"""Leases: never two holders of one device, whatever is killed; and which GPUs are asked for."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from runner_support import environment

from tracelock.errors import TracelockError
from tracelock.runner import gpus, lease
from tracelock.runner.claims import claim
from tracelock.runner.gpus import Gpu
from tracelock.runner.lease import lease_device, lock_name

FOUR = [Gpu(index, f"GPU-{letter * 8}-1", "H200") for index, letter in enumerate("abcd")]
HOLDER = """
    import os, sys, time
    from tracelock.runner import lease
    from tracelock.runner.gpus import Gpu
    lease.visible_gpus = lambda: [Gpu(n, f"GPU-{n}") for n in range(int(sys.argv[1]))]
    held = lease.lease_device("auto", lambda message: None)
    name = held.gpu.uuid if held.gpu else "cpu"
    with open(sys.argv[2], "a") as log:
        log.write(f"{name} {os.getpid()} {time.monotonic()}\\n")
    time.sleep(float(sys.argv[3]))
    with open(sys.argv[2], "a") as log:
        log.write(f"{name} {os.getpid()} {time.monotonic()}\\n")
"""

SIXTY = """
    import json, os, sys, threading, time
    from tracelock.runner import lease
    from tracelock.runner.gpus import Gpu
    lease.visible_gpus = lambda: [Gpu(n, f"GPU-{n}") for n in range(3)]
    def note(name):
        descriptor = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(descriptor, f"{name} {os.getpid()} {time.monotonic()}\\n".encode())
        os.close(descriptor)
    def hold(seconds):
        held = lease.lease_device("auto", lambda message: None)
        note(held.gpu.uuid)
        if not os.fork():  # lives on after a kill
            os.close(1)
            time.sleep(6)
            os._exit(0)
        time.sleep(seconds)
        note(held.gpu.uuid)
    kills = []
    pids = []
    for seconds, life in json.loads(sys.argv[2]):
        pid = os.fork()
        if not pid:
            hold(seconds)
            os._exit(0)
        pids.append(pid)
        if life is not None:
            kills.append((time.monotonic() + life, pid))
    for at, pid in sorted(kills):
        time.sleep(max(0, at - time.monotonic()))
        os.kill(pid, 9)
    assert all(os.waitpid(pid, 0)[1] in (0, 9) for pid in pids)
"""
ALONE = """
    import os, sys, time
    from tracelock.runner import lease
    from tracelock.runner.gpus import Gpu
    lease.visible_gpus = lambda: [Gpu(n, f"GPU-{n}") for n in range(3)]
    pids = []
    for number, exclusive in enumerate(("device", "machine", "device")):
        pid = os.fork()
        if not pid:
            held = lease.lease_device("auto", lambda message: None, exclusive=exclusive)
            for word in ("in", "out"):
                with open(sys.argv[1], "a") as log:
                    log.write(f"{number} {word}\\n")
                time.sleep(0.8 if word == "in" else 0)
            os._exit(0)
        pids.append(pid)
        time.sleep(0.3)
    assert all(os.waitpid(pid, 0)[1] == 0 for pid in pids)
"""


def start(code: str, *arguments: object, locks: Path) -> subprocess.Popen[str]:
    """Start a Python program with the runner on its path."""
    scripts = str(Path(lease.__file__).parents[2])
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        env={**environment(locks), "PYTHONPATH": scripts},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(("devices", "count"), [(0, 6), (2, 10)])
def test_no_two_holders_of_a_device_overlap_even_when_some_are_killed(tmp_path: Path, devices: int, count: int) -> None:
    log = tmp_path / "log"
    running = [start(HOLDER, devices, log, 0.15, locks=tmp_path / "locks") for _ in range(count)]
    chance = random.Random(3)
    for victim in chance.sample(running, 3):
        time.sleep(0.2)
        victim.kill()
    for process in running:
        process.communicate(timeout=60)
    spans: dict[str, dict[str, list[float]]] = {}
    for line in log.read_text().splitlines():
        device, pid, at = line.split()
        spans.setdefault(device, {}).setdefault(pid, []).append(float(at))
    assert sum(len(held) for held in spans.values()) >= count - 3
    assert set(spans) <= ({f"GPU-{n}" for n in range(devices)} or {"cpu"})
    for held in spans.values():
        ordered = sorted(held.values())
        assert all(before[-1] <= after[0] for before, after in itertools.pairwise(ordered))


def test_a_lease_ends_with_its_run_whatever_lives_on(tmp_path: Path) -> None:
    """A child that was stopped at its first instruction, one that has become another program, one that hangs."""
    code = """
        import os, signal, subprocess, sys, time
        from tracelock.runner.lease import lease_device
        held = lease_device("cpu", lambda message: None, {"study": "mine", "variant": "a=1", "repeat": 2})
        children = []
        for kind in range(2):
            child = os.fork()
            if not child:
                os.kill(os.getpid(), signal.SIGSTOP) if kind else time.sleep(60)
                os._exit(0)
            children.append(child)
        other = subprocess.Popen(["sleep", "60"], close_fds=False)
        print(*children, other.pid, flush=True)
        time.sleep(60)
    """
    process = start(code, locks=tmp_path / "locks")
    children = [int(word) for word in process.stdout.readline().split()]  # type: ignore[union-attr]
    assert claim(tmp_path / "locks" / lock_name(None)) is None
    process.kill()
    process.wait()
    process.stdout.close()  # type: ignore[union-attr]
    began = time.monotonic()
    try:
        lease_device("cpu", print).release()
        assert time.monotonic() - began < 5
        for child in children:
            os.kill(child, 0)  # they do live on
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)


def test_sixty_processes_on_three_devices_with_random_kills_never_overlap_nor_lose_one(tmp_path: Path) -> None:
    seed = 20260731
    chance = random.Random(seed)
    log, code = tmp_path / "log", SIXTY
    # Killed before they start to wait, while they wait, while they hold, and never.
    lives = [chance.choice([None, None, None, chance.uniform(0, 1), chance.uniform(0, 8)]) for _ in range(60)]
    plan = [[chance.uniform(0.05, 0.25), life] for life in lives]
    process = start(code, log, json.dumps(plan), locks=tmp_path / "locks")
    out = process.communicate(timeout=100)[0]
    assert process.returncode == 0, f"seed {seed}: {out}"
    spans: dict[str, dict[str, list[float]]] = {}
    for line in log.read_text().splitlines():
        device, pid, at = line.split()
        spans.setdefault(device, {}).setdefault(pid, []).append(float(at))
    unharmed = {pid for held in spans.values() for pid, times in held.items() if len(times) == 2}
    assert len(unharmed) >= sum(life is None for life in lives), f"seed {seed}"
    assert set(spans) == {"GPU-0", "GPU-1", "GPU-2"}
    for held in spans.values():
        ordered = sorted(held.values())
        assert all(before[-1] <= after[0] for before, after in itertools.pairwise(ordered)), f"seed {seed}"


def test_a_machine_for_one_run_alone_waits_for_all_and_lets_nobody_overtake(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = start(ALONE, log, locks=tmp_path / "locks")
    out = process.communicate(timeout=60)[0]
    assert process.returncode == 0, out
    order = [line.split()[:2] for line in log.read_text().splitlines()]
    assert order == [["0", "in"], ["0", "out"], ["1", "in"], ["1", "out"], ["2", "in"], ["2", "out"]]


def test_runs_that_are_bound_to_different_cores_run_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    first = lease_device("cpu", print)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {2, 3, 5}, raising=False)
    second = lease_device("cpu", print)
    assert (first.cores, second.cores) == ((0, 1), (2, 3, 5))
    assert lease.core_text(second.cores) == "2-3,5"
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 2}, raising=False)
    monkeypatch.setattr("tracelock.runner.locks.time.sleep", lambda _: (first.release(), second.release()))
    third = lease_device("cpu", print)
    assert third.cores == (1, 2)
    third.release()


def test_the_leased_gpu_alone_is_visible_and_the_next_run_gets_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "list_gpus", lambda: FOUR)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    first = lease_device("auto", print)
    assert first.gpu == FOUR[3]
    assert os.environ["CUDA_VISIBLE_DEVICES"] == FOUR[3].uuid
    assert os.environ["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    second = lease_device("cuda", print)
    assert second.gpu == FOUR[1]
    first.release()
    first.release()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    third = lease_device("cuda", print)
    assert third.gpu == FOUR[3]
    second.release()
    third.release()


def test_a_run_on_the_cpu_sees_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "list_gpus", lambda: FOUR)
    held = lease_device("cpu", print)
    assert held.gpu is None
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""
    held.release()


def test_who_waits_says_for_whom_and_how_to_end_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = """
        import time
        from tracelock.runner.lease import lease_device
        held = lease_device("cpu", lambda message: None, {"study": "mine", "variant": "a=1", "repeat": 2})
        print("held", flush=True)
        time.sleep(60)
    """
    process = start(code, locks=tmp_path / "locks")
    assert process.stdout.readline() == "held\n"  # type: ignore[union-attr]
    times = itertools.chain([0.0] * 3, [1.0, 2.5, 3.0, 63.0], itertools.repeat(64.0))
    monkeypatch.setattr("tracelock.runner.locks.time.monotonic", lambda: next(times))
    said: list[str] = []
    pauses = iter([lambda: None] * 4 + [lambda: (process.kill(), process.wait())])
    monkeypatch.setattr("tracelock.runner.locks.time.sleep", lambda _: next(pauses)())
    lease_device("cpu", said.append).release()
    process.stdout.close()  # type: ignore[union-attr]
    assert len(said) == 2
    for line, seconds in zip(said, (2, 63), strict=True):
        assert line.startswith(f"waiting since {seconds} s for the CPU of this machine, held by pid {process.pid} ")
        assert "study mine, run a=1 [2], since 20" in line
        assert sys.executable in line
        assert line.endswith(f"(to end it: kill {process.pid})")
    assert not list(
        (tmp_path / "locks").glob(f"holder-{process.pid}-*")
    )  # the next holder clears away a dead one's note


def test_a_link_in_the_shared_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "x.lock").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="symbolic links"):
        claim(tmp_path / "x.lock")
    assert not (tmp_path / "target").exists()


def test_a_lock_folder_that_cannot_be_made_says_how_to_choose_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRACELOCK_LOCK_DIR", str(tmp_path / "file" / "locks"))
    with pytest.raises(TracelockError, match="TRACELOCK_LOCK_DIR"):
        lease.lock_folder()


def test_everybody_on_the_machine_can_lock_what_one_user_has_made(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        folder = lease.lock_folder()
        assert claim(folder / "a.lock")
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o7777 == 0o1777
    assert (folder / "a.lock").stat().st_mode & 0o777 == 0o666
