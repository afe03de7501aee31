"""The study: how it is started, which processes it has, and whether its files are whole."""

from __future__ import annotations

import csv
import gzip
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.tests_support import hear_signals

from tracelock.runner.probes import descendants

ROOT = Path(__file__).resolve().parents[2]
VARIANTS, REPEATS = 5, 6
TEXT = f"""
name: short
workload: {{build: "work.py:build"}}
baseline: {{batch_size: 1}}
factors: {{batch_size: {list(range(1, VARIANTS + 1))}}}
repeats: {REPEATS}
threads: 1
device: cpu
allow_unlocked: true
timing: {{warmup_steps: 0, steps: 2}}
profiler: {{wait: 0, warmup: 1, active: 1}}
limits: {{max_duration_s: 60}}
"""
_ENDS = {".html": b"</html>", ".svg": b"</svg>", ".png": b"IEND\xaeB`\x82"}
_NAMES_COMMAND = "To go on"


@dataclass
class Study:
    """One study in a folder of its own.

    Parameters
    ----------
    folder
        The working folder; results, locks and Snakemake's own files lie in it.
    command
        What starts it, and goes on with it.
    """

    folder: Path
    command: list[str] = field(default_factory=lambda: ["tracelock", "study", "run", "study.yaml"])

    def __post_init__(self) -> None:
        (self.folder / "study.yaml").write_text(TEXT, encoding="utf-8")
        shutil.copy(Path(__file__).with_name("work.py"), self.folder)

    @property
    def base(self) -> Path:
        """The folder of its results."""
        return self.folder / "results" / "short"

    @property
    def said(self) -> Path:
        """The file with what the newest start printed."""
        return self.folder.parent / f"{self.folder.name}-said.txt"

    def start(self) -> subprocess.Popen[bytes]:
        """Start the command, alone in a session, with the signals of a shell in the foreground."""
        variables = {**os.environ, "TRACELOCK_LOCK_DIR": str(self.folder.parent / "locks"), "NO_COLOR": "1"}
        variables["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{variables.get('PATH', '')}"
        with self.said.open("wb") as stream:
            return subprocess.Popen(
                self.command,
                cwd=self.folder,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=hear_signals,
            )

    def text(self) -> str:
        """Return what the newest start printed."""
        return self.said.read_text(encoding="utf-8", errors="replace")

    def named_command(self) -> list[str] | None:
        """Return the command that the newest start names to go on, None where it names none."""
        lines = [line for line in self.text().splitlines() if _NAMES_COMMAND in line]
        return shlex.split(lines[-1].partition(_NAMES_COMMAND)[2].partition(": ")[2]) if lines else None

    def done(self) -> set[Path]:
        """Return the run.json files that are there."""
        return set(self.base.glob("runs/*/*/*/run.json"))

    def halves(self) -> list[str]:
        """Return what is wrong with any file that has a final name, at this moment: none may be a part of one."""
        found = []
        for path in self.files():
            try:
                fault = _fault(path)
            except FileNotFoundError:  # taken away at this moment
                continue
            if fault:
                found.append(f"{path.relative_to(self.folder)}: {fault}")
        return found

    def files(self) -> Iterator[Path]:
        """Yield the published files of the study; logs apart."""
        for path in self.base.rglob("*"):
            inner = path.relative_to(self.base).parts
            if path.is_file() and not any(part.startswith(".") for part in inner) and inner[0] != "logs":
                yield path

    def incomplete(self) -> list[str]:
        """Return what a study that has ended well lacks, or has and should not."""
        found = self.halves()
        plan = json.loads((self.base / "plan.json").read_text(encoding="utf-8"))
        digests = {each["id"]: each["digest"] for each in plan["variants"]}
        planned = {(run["variant"], run["repeat"]) for run in plan["runs"]}
        runs = [json.loads(path.read_text(encoding="utf-8")) for path in self.done()]
        measured = [(run["variant"], run["repeat"]) for run in runs]
        if sorted(measured) != sorted(planned) or len(planned) != VARIANTS * REPEATS:
            found.append(f"{len(measured)} runs, planned: {len(planned)}")
        found += [f"{run['variant']}: measured with other settings" for run in runs if not _as_planned(run, digests)]
        kinds = {frozenset(path.name for path in run.parent.iterdir() if path.name[0] != ".") for run in self.done()}
        if len(kinds) != 1:
            found.append(f"runs differ in their files: {kinds}")
        with (self.base / "tables" / "runs.csv").open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        if len(rows) != len(planned):
            found.append(f"{len(rows)} runs in the table")
        found += [
            f"{name} is missing" for name in ("report.html", "comparison.json") if not (self.base / name).exists()
        ]
        return found

    def left(self) -> list[int]:
        """Return the processes that work in the study's folder."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if (process / "cwd").readlink() == self.folder and _state(int(process.name)) != "Z":
                    found.append(int(process.name))
            except OSError:
                continue
        return found

    def all_gone(self, within_s: float) -> bool:
        """Wait for the end of all its processes, and return whether they have ended."""
        deadline = time.monotonic() + within_s
        while self.left():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True


def processes(driver: int) -> dict[str, list[int]]:
    """Return the processes below a driver by what they are: snakemake, beside, run, analysis."""
    found: dict[str, list[int]] = {"driver": [driver], "snakemake": [], "beside": [], "run": [], "analysis": []}
    for pid in descendants(driver):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        program = Path(words[1]).name if len(words) > 1 else ""
        if words[1:3] == ["-m", "snakemake"] and parent == driver:
            found["snakemake"].append(pid)
        elif program == "run_workload.py":
            found["run" if parent in found["beside"] else "beside"].append(pid)
        elif program in ("analyze.py", "compare.py", "figures.py", "report.py"):
            found["analysis"].append(pid)
    return found


def _as_planned(run: dict[str, Any], digests: dict[str, str]) -> bool:
    return bool(run["schema"] == "tracelock/run/1" and run["digest"] == digests.get(run["variant"]))


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _fault(path: Path) -> str:
    """Return why a file is a part of one, or an empty string."""
    data = path.read_bytes()
    if path.name.endswith(".gz"):
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError) as error:
            return f"is cut off: {error}"
    if ".json" in path.name:
        try:
            whole = json.loads(data)
        except ValueError as error:
            return f"is no JSON: {error}"
        return "" if path.name.endswith(".gz") or "schema" in whole else "has no schema"
    end = _ENDS.get(path.suffix, b"\n" if path.suffix == ".csv" else b"")
    return "" if data.rstrip(b"\r\n ").endswith(end.strip()) and (data or not end) else f"does not end with {end!r}"
