"""The work of ``tracelock watch``: run the command, and show what is streamed of its steps."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live as Screen
from rich.table import Table
from rich.text import Text

from tracelock.cli import _format as fmt
from tracelock.cli._profile import check_step, default_folder
from tracelock.io import schema, write_text
from tracelock.runner.command.collect import processes
from tracelock.runner.command.dcgm import Exporter
from tracelock.runner.command.keep import keep_traces
from tracelock.runner.command.launch import launch, request_for, scratch
from tracelock.runner.command.live import Live, append_line, prometheus
from tracelock.runner.command.signals import end_like
from tracelock.runner.command.slowdown import Slowdown

INTERVAL_S = 0.1  # 10 Hz
WRITTEN_S = 1.0


@dataclass(frozen=True)
class Asked:
    """What was asked for on the command line; `window` is 0 or the steps of a profile on slow-down."""

    command: Sequence[str]
    output: Path | None
    step: str | None
    jsonl: Path | None
    textfile: Path | None
    window: int
    dcgm: str | None
    every_s: float
    plain: bool


def run(asked: Asked) -> int:
    """Run the command, tell of its steps meanwhile and at its end, and return its exit code."""
    check_step(asked.step)
    folder = asked.output or default_folder(asked.command)
    there = folder.exists()
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    with ExitStack() as stack:
        exporter = Exporter(asked.dcgm) if asked.dcgm else None
        if exporter is not None:
            stack.callback(exporter.start())
        place = stack.enter_context(scratch(folder))
        live = Live(place, INTERVAL_S, asked.window)
        teller = Teller(asked, live, exporter, console, stack)
        code = launch(asked.command, request_for(place, watch=True, step=asked.step), teller)
        live.read()
        teller.end()
        kept = keep_traces(processes(place, live.processes), folder)
    for path in kept:
        console.print(Text(f"Profile of the slow-down: {path}  (tracelock analyze {path})"), soft_wrap=True)
    if not kept and not there:
        folder.rmdir()
    return end_like(code)


class Teller:
    """Shows, writes and exports the status, each as often as it is due."""

    def __init__(self, asked: Asked, live: Live, exporter: Exporter | None, console: Console, stack: ExitStack) -> None:
        self._asked, self._live, self._exporter, self._console = asked, live, exporter, console
        self._written = self._told = 0.0
        self._screen: Screen | None = None
        if console.is_terminal and not asked.plain:
            self._screen = stack.enter_context(Screen(console=console, transient=True, auto_refresh=False))

    def __call__(self, pid: int, passed_s: float) -> None:
        """Do what is due; called about five times a second."""
        self._live(pid, passed_s)
        self._news()
        now = time.monotonic()
        if now - self._written >= WRITTEN_S:
            self._written = now
            self._write()
        if self._screen is not None:
            self._screen.update(view(self._live.status(), self._gpus()), refresh=True)
        elif now - self._told >= self._asked.every_s and self._live.status():
            self._told = now
            self._lines()

    def end(self) -> None:
        """Tell where it ended."""
        self._news()
        self._write()
        if self._screen is not None:
            self._screen.update(Text(""), refresh=True)
        self._lines()
        if not self._live.ranks:
            from tracelock.cli._script_answer import show_nothing

            show_nothing([], {"step": self._asked.step}, self._console)

    def _lines(self) -> None:
        for row in self._live.status():
            self._console.print(Text(f"tracelock: {line(row)}"), soft_wrap=True)

    def _news(self) -> None:
        for rank, slow in self._live.news:
            text = f"tracelock: {news(rank, slow, len(self._live.ranks) > 1)}"
            self._console.print(Text(text, "bold yellow"), soft_wrap=True)
        self._live.news.clear()

    def _write(self) -> None:
        rows = self._live.status()
        if self._asked.jsonl is not None:
            for row in rows:
                append_line(self._asked.jsonl, {"schema": schema("watch"), **row, "dcgm": self._gpus() or None})
        if self._asked.textfile is not None and rows:
            write_text(self._asked.textfile, prometheus(rows, self._gpus()))

    def _gpus(self) -> Mapping[str, Mapping[str, Any]]:
        return self._exporter.latest if self._exporter is not None else {}


def news(rank: int, slow: Slowdown, several: bool) -> str:
    """Return what there is to say of a slow-down."""
    at = datetime.fromtimestamp(time.time() - (time.monotonic() - slow.end_s))
    whose = f"rank {rank}: " if several else ""
    change = slow.after_us / slow.before_us - 1
    pace = f"{fmt.time(slow.before_us)} → {fmt.time(slow.after_us)}"
    return f"{whose}steps are slower since step {slow.step + 1} ({at:%H:%M:%S}): {pace} (+{100 * change:.0f} %)"


def line(row: Mapping[str, Any]) -> str:
    """Return a status as one line."""
    return "  ".join(f"{name} {value}" for name, value in _cells(row))


def _cells(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "rank", str(row["rank"])
    yield "step", f"{row['step']:,}"
    yield "time", fmt.time(row["step_us"])
    if row["samples_per_s"] is not None:
        yield "samples/s", f"{row['samples_per_s']:,.0f}"
    yield "loading", fmt.share(row["loading_share"])
    if row["process_cpu_percent"] is not None:
        yield "CPU", f"{row['process_cpu_percent']:.0f} %"
    yield "memory", fmt.size(row["tree_rss_bytes"])
    if row.get("gpu_utilization_percent") is not None:
        yield "GPU", f"{row['gpu_utilization_percent']:.0f} %"
        yield "GPU memory", fmt.size(row.get("gpu_memory_used_bytes"))
    if row.get("gpu_throttle") not in (None, "", "idle"):
        yield "throttled", str(row["gpu_throttle"])


def view(rows: Sequence[Mapping[str, Any]], gpus: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return the live view: a row for each process, and one for each GPU of a DCGM exporter."""
    table = Table.grid(padding=(0, 2))
    if not rows:
        table.add_row(Text("waiting for the first step ...", "dim"))
    for row in rows:
        table.add_row(*(Text.assemble((f"{name} ", "dim"), value) for name, value in _cells(row)))
    for gpu, metrics in sorted(gpus.items()):
        table.add_row(Text(f"GPU {gpu}", "dim"), *(Text(f"{name} {value}") for name, value in sorted(metrics.items())))
    return table
