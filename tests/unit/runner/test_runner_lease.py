"""Leases: never two holders of one device, whatever is killed; and which GPUs are asked for."""

from __future__ import annotations

import itertools
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
from tracelock.runner.gpus import Gpu, preset
from tracelock.runner.lease import lease_device, lock_name
from tracelock.runner.locks import open_lock, try_lock

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


def test_a_lease_outlives_a_killed_run_as_long_as_its_children_live(tmp_path: Path) -> None:
    code = """
        import os, sys, time
        from tracelock.runner.lease import lease_device
        held = lease_device("cpu", lambda message: None)
        child = os.fork()
        if not child:
            time.sleep(60)
            os._exit(0)
        print(child, flush=True)
        time.sleep(60)
    """
    process = start(code, locks=tmp_path / "locks")
    child = int(process.stdout.readline())  # type: ignore[union-attr]
    process.kill()
    process.wait()
    process.stdout.close()  # type: ignore[union-attr]
    descriptor = open_lock(tmp_path / "locks" / lock_name(None))
    assert not try_lock(descriptor)
    os.kill(child, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while not try_lock(descriptor):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.close(descriptor)


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


def test_an_idle_gpu_is_preferred_to_one_that_others_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "list_gpus", lambda: [Gpu(0, "GPU-0", busy=2), Gpu(1, "GPU-1"), Gpu(2, "GPU-2", busy=1)])
    assert [gpu.index for gpu in gpus.visible_gpus({})] == [1, 2, 0]


def test_a_run_on_the_cpu_sees_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "list_gpus", lambda: FOUR)
    held = lease_device("cpu", print)
    assert held.gpu is None
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""
    held.release()


def test_who_waits_says_for_what(monkeypatch: pytest.MonkeyPatch) -> None:
    held = lease_device("cpu", print)
    times = iter([0.0, 1.0, 2.5, 3.0, 63.0, 64.0])
    monkeypatch.setattr("tracelock.runner.locks.time.monotonic", lambda: next(times))
    said: list[str] = []
    pauses = iter([lambda: None] * 4 + [held.release])
    monkeypatch.setattr("tracelock.runner.locks.time.sleep", lambda _: next(pauses)())
    lease_device("cpu", said.append).release()
    assert said == [f"waiting since {seconds} s for the CPU of this machine: other runs hold it" for seconds in (2, 63)]


@pytest.mark.parametrize(
    ("visible", "indices"),
    [
        (None, [0, 1, 2, 3]),
        ("2", [2]),
        ("2,0", [2, 0]),
        (" 1 , 3 ", [1, 3]),
        ("1,9,3", [1]),  # CUDA ends the list at the first entry that names nothing
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("GPU-cccccccc-1,GPU-a", [2, 0]),
        ("GPU-x,0", []),
    ],
)
def test_a_preset_of_visible_devices_is_respected(visible: str | None, indices: list[int]) -> None:
    assert [gpu.index for gpu in preset(FOUR, visible)] == indices


def test_a_slice_of_a_gpu_is_a_device_of_its_own() -> None:
    assert preset(FOUR, "MIG-1234") == [Gpu(None, "MIG-1234")]
    assert preset([], "MIG-1234") == []


def test_nvidia_smi_is_asked_where_nvml_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(
        "#!/bin/sh\ncase $1 in --query-gpu*) echo '0, GPU-aa, NVIDIA A100, 80GB'; echo '1, GPU-bb, T4';;"
        " *) echo GPU-bb; echo GPU-bb;; esac\n"
    )
    program.chmod(0o755)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert gpus.list_gpus() == [Gpu(0, "GPU-aa", "NVIDIA A100, 80GB"), Gpu(1, "GPU-bb", "T4", busy=2)]
    program.write_text("#!/bin/sh\necho 'NVIDIA-SMI has failed'; exit 9\n")
    assert gpus.list_gpus() == []
    program.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpus.list_gpus() == []


def test_a_link_in_the_shared_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "x.lock").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="symbolic links"):
        open_lock(tmp_path / "x.lock")
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
        os.close(open_lock(folder / "a.lock"))
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o7777 == 0o1777
    assert (folder / "a.lock").stat().st_mode & 0o777 == 0o666
