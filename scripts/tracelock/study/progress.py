"""Where a running study stands, read from the files that appear.

So it looks the same in a terminal, in a batch job's log, and whatever executes the jobs. The plans of remedies appear
while the study runs; their runs then count, too.
"""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tracelock.errors import TracelockError
from tracelock.io import read_json
from tracelock.study.layout import Layout

_POLL_S = 0.3


@dataclass
class Board:
    """The runs that are planned so far, and those that are done; a run's file stands for it."""

    layout: Layout
    waiting: dict[Path, str] = field(default_factory=dict)  # run.json -> what to call the run
    done: set[Path] = field(default_factory=set)

    def __post_init__(self) -> None:
        repeats = self.layout.plan.study.repeats
        for path, run in zip(self.layout.runs("run.json"), self.layout.plan.runs, strict=True):
            self.waiting[Path(path)] = f"{run.variant} ({run.repeat}/{repeats})"
        self.done = {path for path in self.waiting if path.is_file()}

    def news(self) -> list[str]:
        """Return what to call the runs that have been done since the last call."""
        self._add_rounds()
        fresh = [path for path in self.waiting if path not in self.done and path.is_file()]
        self.done.update(fresh)
        return [self.waiting[path] for path in fresh]

    def _add_rounds(self) -> None:
        for file in sorted(Path(self.layout.base).glob("rounds/*/plan.json")):
            try:
                plan = read_json(file, "plan")
            except TracelockError:  # taken away at this moment, to be made again
                continue
            for run in plan["runs"]:
                place = file.parent / "runs" / run["environment"] / run["variant"] / str(run["repeat"]) / "run.json"
                name = f"remedy {file.parent.name}: {run['variant']} ({run['repeat']}/{plan['repeats']})"
                self.waiting.setdefault(place, name)


def follow(process: subprocess.Popen[bytes], layout: Layout, console: Console) -> None:
    """Show progress until the process ends: a bar in a terminal, a line for each run elsewhere."""
    board = Board(layout)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("runs", total=len(board.waiting), completed=len(board.done))
        while process.poll() is None:
            time.sleep(_POLL_S)
            for name in board.news():
                progress.update(task, description=name)
                if not console.is_terminal:
                    count = f"{len(board.done)}/{len(board.waiting)}"
                    console.print(f"{time.strftime('%H:%M:%S')} run {count} done: {name}")
            progress.update(task, completed=len(board.done), total=len(board.waiting))
            if len(board.done) == len(board.waiting):
                progress.update(task, description="analysis, figures, report")
