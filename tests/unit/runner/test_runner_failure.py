"""failure.json: cause, exception, the user's line; of exceptions, of endings that say nothing, and of whole runs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from runner_support import PROGRAM, Program, command, environment, make_spec, visible
from tests_support import hear_signals

from tracelock.errors import TracelockError
from tracelock.runner import failure
from tracelock.runner.ends import EndsLog
from tracelock.runner.failure import of_ending, of_exception, told_by_kernel, told_by_signal
from tracelock.runner.process import OverdueError, Stopped

USERS = r"""
import os, signal, sys, time
import torch
from tracelock.runner.loader import make_loader
from tracelock.runner.workload import Workload

class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 0 if MODE == "empty" else 8
    def __getitem__(self, index):
        if MODE == "item":
            raise KeyError("no label")  # line: item
        if MODE == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.ones(2)

MODE = os.environ["MODE"]
if MODE == "import":
    import no_such_module_of_anybody  # line: import

def build(settings):
    if MODE == "build":
        raise RuntimeError("no such data\nand more")  # line: build
    if MODE == "cuda":
        torch.ones(1).to("cuda")  # line: cuda
    if MODE == "print":
        for number in range(60_000):
            print("line", number, "of many, each of some length, as frameworks in debug mode print them")
    def step(batch):
        if MODE == "raise":
            raise ValueError("loss is lost")  # line: raise
        if MODE == "exit":
            sys.exit(7)  # line: exit
        if MODE == "os_exit":
            os._exit(3)
        if MODE == "segv":
            os.kill(os.getpid(), signal.SIGSEGV)  # line: segv
        if MODE == "memory":
            bytearray(1 << 60)  # line: memory
        if MODE == "hang":
            if not os.fork():
                time.sleep(600)
            time.sleep(600)
    loader = make_loader(Items(), settings, shuffle=False)
    return Workload(loader, step)
"""


# Each run in a fork of one process that has imported torch: the import is most of a run's time.
FORKS = r"""
import json, os, sys
import torch
import run_workload
for mode, arguments in json.loads(sys.argv[1]).items():
    pid = os.fork()
    if not pid:
        os.environ["MODE"] = mode
        sys.argv[1:] = arguments
        os.dup2(os.open(f"{mode}.err", os.O_CREAT | os.O_WRONLY), 2)
        code = run_workload.main()
        sys.stderr.flush()
        os._exit(code)
    print(mode, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
MODES = ("import", "build", "cuda", "raise", "item", "killed", "exit", "os_exit", "segv", "memory", "empty")


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[dict[str, Any], int, str, Path]]:
    """Return failure.json, exit code, what was printed and the user's file of a run in each mode."""
    folder = tmp_path_factory.mktemp("failed")
    users = folder / "users.py"
    users.write_text(USERS)
    calls = {}
    for mode in MODES:
        workers = 1 if mode in ("item", "killed") else 0
        spec = make_spec(folder / mode, workload=f"{users}:build", settings={"num_workers": workers})
        calls[mode] = command(spec, folder / mode / "out")[2:]
    done = subprocess.run(
        [sys.executable, "-c", FORKS, json.dumps(calls)],
        env={**environment(folder / "locks"), "PYTHONPATH": str(PROGRAM.parent)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    codes = dict(line.split() for line in done.stdout.splitlines())
    for mode in MODES:
        assert visible(folder / mode / "out") == {"failure.json", "log.txt"}, mode
    return {
        mode: (
            json.loads((folder / mode / "out" / "failure.json").read_text()),
            int(codes[mode]),
            (folder / f"{mode}.err").read_text(),
            users,
        )
        for mode in MODES
    }


@pytest.mark.parametrize(
    ("mode", "cause", "what"),
    [
        ("import", "user-code", "No module named 'no_such_module_of_anybody'"),
        ("build", "user-code", "no such data"),
        ("cuda", "cuda-error", None),
        ("raise", "user-code", "loss is lost"),
        ("item", "user-code", None),
        ("killed", "signal", None),
        ("exit", "exit", "7"),
        ("os_exit", "exit", "the process ended with exit code 3"),
        ("segv", "signal", "ended by SIGSEGV"),
        ("memory", "out-of-memory", None),
        ("empty", "empty-loader", "the workload's loader gives no batch"),
    ],
)
def test_a_run_that_fails_says_why_and_where(
    mode: str, cause: str, what: str | None, failed: dict[str, tuple[dict[str, Any], int, str, Path]]
) -> None:
    found, code, errors, users = failed[mode]
    assert found["schema"] == "tracelock/failure/1"
    assert (found["cause"], found["log"], found["variant"], found["repeat"]) == (cause, "log.txt", "num_workers=0", 1)
    assert what is None or found["what"] == what
    lines = USERS.splitlines()
    line = next((number for number, text in enumerate(lines, 1) if text.endswith(f"# line: {mode}")), None)
    if line is not None:
        assert (found["where"]["file"], found["where"]["line"]) == (str(users), line)
        assert f"users.py:{line} (traceback in" in errors
    assert found["before_steps"] is (mode in {"import", "build", "cuda"})
    assert code == 1
    assert errors.count("\n") == 1, errors


def test_a_loading_process_that_is_killed_is_told_as_that(
    failed: dict[str, tuple[dict[str, Any], int, str, Path]],
) -> None:
    found = failed["killed"][0]
    assert found["signal"] == "SIGKILL"
    assert re.fullmatch(r"loading process \d+ was ended by SIGKILL", found["what"])


def test_a_log_keeps_both_ends_and_says_what_it_left_out(
    tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "users.py").write_text(USERS)
    monkeypatch.setenv("MODE", "print")
    spec = make_spec(tmp_path, workload=f"{tmp_path / 'users.py'}:build", timing={"steps": 2})
    assert program(spec, tmp_path / "out").returncode == 0
    text = (tmp_path / "out" / "log.txt").read_text()
    assert len(text) < 1_001_000
    assert "line 0 of" in text
    assert "line 59999 of" in text
    assert "lines) are left out here; the log keeps the first and the last part]" in text


@pytest.mark.parametrize("size", [0, 5, 10, 11, 25, 26, 30, 1000])
def test_the_ends_of_a_log_are_exact(tmp_path: Path, size: int) -> None:
    data = bytes(65 + number % 26 for number in range(size))
    log = EndsLog(tmp_path / "log", head=10, tail=15)
    for start in range(0, size, 7):
        log.write(data[start : start + 7])
    log.close()
    text = (tmp_path / "log").read_bytes()
    if size <= 25:
        assert text == data
    else:
        assert text.startswith(data[:10])
        assert text.endswith(data[-15:])
        assert f"[tracelock: {size - 25:,} bytes".encode() in text


def test_whatever_a_run_leaves_behind_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process beside it ends them, those too that nobody would have heard of."""
    (tmp_path / "users.py").write_text(USERS)
    monkeypatch.setenv("MODE", "hang")
    spec = make_spec(tmp_path, workload=f"{tmp_path / 'users.py'}:build", settings={"num_workers": 1})
    process = subprocess.Popen(
        command(spec, tmp_path / "out"), env=environment(tmp_path / "locks"), preexec_fn=hear_signals
    )
    deadline = time.monotonic() + 60
    while len(tree := below(process.pid)) < 3:  # the run, a loading process, the child of the step
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(tree[0], signal.SIGKILL)
    assert process.wait(timeout=20) == 1
    assert [pid for pid in tree if Path(f"/proc/{pid}").exists()] == []
    assert json.loads((tmp_path / "out" / "failure.json").read_text())["signal"] == "SIGKILL"


def below(pid: int) -> list[int]:
    """Return the processes below one, parents first."""
    from tracelock.runner.probes import descendants

    return descendants(pid)


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"), "out-of-memory"),
        (RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"), "out-of-memory"),
        (MemoryError(), "out-of-memory"),
        (
            RuntimeError("DataLoader worker is killed by signal: Bus error. insufficient shared memory (shm)"),
            "out-of-memory",
        ),
        (RuntimeError("CUDA error: an illegal memory access was encountered\nmore"), "cuda-error"),
        (AssertionError("Torch not compiled with CUDA enabled"), "cuda-error"),
        (ValueError("the word CUDA in a message of the user"), "user-code"),
        (OverdueError("a step has not ended"), "time-limit"),
        (failure.LimitError("max_duration_s leaves no time"), "time-limit"),
        (failure.EmptyLoaderError(), "empty-loader"),
        (Stopped(signal.SIGTERM), "signal"),
        (SystemExit(), "exit"),
        (TracelockError("device: is cuda, but torch finds no GPU here"), "setup"),
    ],
)
def test_causes_are_told_apart(error: BaseException, cause: str) -> None:
    found = of_exception(error)
    assert found.cause == cause
    assert found.what
    assert "\n" not in found.what


def test_a_kill_is_lack_of_memory_only_where_the_kernel_says_so() -> None:
    assert of_ending(signal.SIGKILL, None, [], True).cause == "out-of-memory"
    assert of_ending(signal.SIGKILL, None, [], False).cause == "signal"
    assert of_ending(signal.SIGSEGV, None, [], True).cause == "signal"


def test_a_loading_process_that_the_kernel_ended_for_memory_is_told_as_that() -> None:
    error = RuntimeError("DataLoader worker (pid 4711) is killed by signal: Killed. ")
    killed = of_exception(error)
    assert (killed.cause, killed.signal) == ("signal", "SIGKILL")
    assert told_by_kernel(killed, False) == killed
    memory = told_by_kernel(killed, True)
    assert (memory.cause, memory.what.partition(":")[0]) == (
        "out-of-memory",
        "the system ended a loading process for lack of memory",
    )
    raised = RuntimeError("DataLoader worker (pid(s) 4711) exited unexpectedly")
    raised.__cause__ = error
    assert of_exception(raised) == killed
    bus = "DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that dataloader's workers are out"
    assert of_exception(RuntimeError(bus)).cause == "out-of-memory"
    other = of_exception(ValueError("anything of the user"))
    assert told_by_kernel(other, True) == other


def test_only_an_exception_of_the_code_is_laid_to_a_signal() -> None:
    other = of_exception(ValueError("anything of the user"))
    assert told_by_signal(other, None) == other
    told = told_by_signal(other, signal.SIGTERM)
    assert (told.cause, told.signal, told.what) == (
        "signal",
        "SIGTERM",
        "stopped by SIGTERM; on the way: anything of the user",
    )
    memory = of_exception(MemoryError())
    assert told_by_signal(memory, signal.SIGTERM) == memory
