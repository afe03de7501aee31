"""Measuring whole processes: CPU time, wall time and peak memory, imports and all."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent.parent
CACHE: Final = ROOT / ".cache" / "bench"


@dataclass(frozen=True)
class Measured:
    """What one run of a program took."""

    name: str
    wall_s: float
    cpu_s: float  # user and system, with its processes
    peak_bytes: int  # largest resident set; of several processes the sum that the program printed
    output: str

    def per_cpu_s(self, json_bytes: int) -> float:
        """Return 10**6 bytes of JSON a CPU-second."""
        return json_bytes / 1e6 / self.cpu_s

    def per_wall_s(self, json_bytes: int) -> float:
        """Return 10**6 bytes of JSON a second."""
        return json_bytes / 1e6 / self.wall_s


def run(name: str, command: Sequence[str], environment: dict[str, str] | None = None) -> Measured:
    """Run a program and measure it; raises if it fails.

    The peak is that of the process itself (`ru_maxrss`), or, if the last line it prints is ``PEAK <bytes>``, that.
    """
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | (environment or {})) as process:
        output = process.stdout.read() if process.stdout else ""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - began
    if process.returncode:
        raise RuntimeError(f"{name} failed: {command} → {process.returncode}")
    last = output.rstrip().rpartition("\n")[2]
    peak = int(last.removeprefix("PEAK ")) if last.startswith("PEAK ") else usage.ru_maxrss * 1024
    return Measured(name, wall, usage.ru_utime + usage.ru_stime, peak, output)


def python(name: str, code: str, *arguments: str) -> Measured:
    """Measure a piece of Python that uses tracelock."""
    return run(name, [sys.executable, "-c", code, *arguments], {"PYTHONPATH": str(ROOT / "scripts")})


def peers() -> Path:
    """Return the interpreter of the environment of other tools, which is made if it is absent."""
    folder, wanted = ROOT / ".venv-bench", Path(__file__).with_name("requirements.txt")
    stamp, interpreter = folder / ".installed", folder / "bin" / "python"
    if not stamp.is_file() or stamp.read_text() != wanted.read_text():
        print(f"Installing {wanted.name} into {folder.name} ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [interpreter, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--quiet", "--no-deps"]
        subprocess.run([*pip, "-r", wanted], check=True)
        stamp.write_text(wanted.read_text())
    return interpreter


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def mib(count: int) -> str:
    """Return bytes as MiB."""
    return f"{count / 2**20:.0f} MiB"
