"""Where a running study stands, read from the files that appear.

So it looks the same in a terminal, in a batch job's log, and whatever executes the jobs. The plans of remedies appear
while the study runs; their runs then count, too.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tracelock.errors import TracelockError
from tracelock.io import read_json
from tracelock.runner.probes import descendants
from tracelock.study.failures import failure_line, failure_of, stops_study
from tracelock.study.job_news import job_failures
from tracelock.study.layout import Layout

_POLL_S = 0.3


@dataclass
class Board:
    """The runs that are planned so far, and those that are done; a run's file stands for it."""

    layout: Layout
    waiting: dict[Path, str] = field(default_factory=dict)  # run.json -> what to call the run
    done: set[Path] = field(default_factory=set)
    failures: list[dict[str, Any]] = field(default_factory=list)  # in the order in which they were seen
    _told: dict[Path, str] = field(default_factory=dict)  # run.json -> token of the attempt whose failure is known

    def __post_init__(self) -> None:
        repeats = self.layout.plan.study.repeats
        for file, run in zip(self.layout.runs("run.json"), self.layout.plan.runs, strict=True):
            self.waiting[Path(file)] = f"{run.variant} ({run.repeat}/{repeats})"
        self._before = {path for path in self.waiting if path.is_file()}
        self.done = set(self._before)
        for path in self.waiting:  # of an earlier start
            if failure := failure_of(path):
                self._told[path] = failure["token"]

    @property
    def done_now(self) -> int:
        """Runs that have been done since the start."""
        return len(self.done - self._before)

    def bad_news(self) -> list[str]:
        """Return one line for each run that has failed since the last call."""
        lines = []
        for path, name in self.waiting.items():
            if path in self.done or not (failure := failure_of(path)) or self._told.get(path) == failure["token"]:
                continue
            self._told[path] = failure["token"]
            self.failures.append(failure)
            lines.append(f"failed: {name}: {failure_line(failure)}; log: {failure['path']}")
        return lines

    def news(self) -> list[str]:
        """Return what to call the runs that have been done since the last call."""
        self._add_rounds()
        self._add_more()
        self._add_stacks()
        fresh = [path for path in self.waiting if path not in self.done and path.is_file()]
        self.done.update(fresh)
        return [self.waiting[path] for path in fresh]

    def _add_more(self) -> None:
        base = Path(self.layout.base)
        for file in sorted(base.glob("more/*.json")):
            try:
                wave = read_json(file, "more")
            except TracelockError:  # taken away at this moment, to be made again
                continue
            for run in wave["runs"]:
                place = base.joinpath("runs", run["environment"], run["variant"], str(run["repeat"]), "run.json")
                self.waiting.setdefault(place, f"{run['variant']} ({run['repeat']}; {run['why']})")

    def _add_rounds(self) -> None:
        for file in sorted(Path(self.layout.base).glob("rounds/*/plan.json")):
            self._add_plan(file, f"remedy {file.parent.name}: {{variant}} ({{repeat}}/{{repeats}})")

    def _add_stacks(self) -> None:
        self._add_plan(Path(self.layout.base, "stacks", "plan.json"), "with Python stacks, for lines: {variant}")

    def _add_plan(self, file: Path, name: str) -> None:
        """Wait for the runs of a plan that the study itself has made; `name` is filled with what each of them is."""
        try:
            plan = read_json(file, "plan")
        except TracelockError:  # not there, or taken away at this moment, to be made again
            return
        for run in plan["runs"]:
            place = file.parent / "runs" / run["environment"] / run["variant"] / str(run["repeat"]) / "run.json"
            self.waiting.setdefault(place, name.format(**run, repeats=plan["repeats"]))


class Notices:
    """Lines that runs write while they wait."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0

    def new(self) -> list[str]:
        """Return the lines since the last call."""
        try:
            with self._path.open(encoding="utf-8", errors="replace") as stream:
                stream.seek(self._at)
                lines = stream.read().splitlines()
                self._at = stream.tell()
        except OSError:
            return []
        return lines


def follow(
    process: subprocess.Popen[bytes],
    layout: Layout,
    console: Console,
    notices: Path,
    keep_going: bool,
    log: Path | None = None,
) -> Board:
    """Show progress until the process ends: a bar in a terminal, a line for each run elsewhere; failures at once.

    Parameters
    ----------
    notices
        A file to which runs write when they wait.
    keep_going
        Whether the study goes on when its first two runs fail in one way before their first step.
    log
        Snakemake's, in which jobs of a batch system fail.
    """
    board, waits = Board(layout), Notices(notices)
    jobs = Notices(log) if log else None
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("runs", total=len(board.waiting), completed=len(board.done))
        ended = False
        while not ended:
            ended = process.poll() is not None
            if not ended:
                time.sleep(_POLL_S)
            before, news = len(board.done), board.news()
            for done, name in enumerate(news, before + 1):
                progress.update(task, description=escape(name))
                if not console.is_terminal:
                    _say(console, f"run {done}/{len(board.waiting)} done: {name}")
            for line in [*board.bad_news(), *waits.new(), *job_failures(jobs.new() if jobs else ())]:
                _say(console, line)
            progress.update(task, completed=len(board.done), total=len(board.waiting))
            if len(board.done) == len(board.waiting):
                progress.update(task, description="analysis, figures, report")
            if not keep_going and not ended and stops_study(board.failures, board.done_now):
                _say(console, "the first two runs failed in the same way, so the study stops (--keep-going goes on)")
                end_tree(process)
                ended = True
    return board


def end_tree(process: subprocess.Popen[bytes]) -> None:
    """End a process and what it has started, and wait for it: asked first, killed after 40 s."""
    pids = [process.pid]
    with contextlib.suppress(OSError):
        pids += descendants(process.pid)
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGTERM)
    try:
        process.wait(40)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _say(console: Console, text: str) -> None:
    console.print(f"{time.strftime('%H:%M:%S')} {text}", markup=False)
