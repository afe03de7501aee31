"""The end of a study in the terminal: a line for each variant, the answer, and where the report lies."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tracelock.report.answer import headline
from tracelock.report.text import UNKNOWN, UNLOCKED, label, percent, plural, rate, ratio, ratio_interval, time
from tracelock.study import comparison as document
from tracelock.study.comparison import Comparison
from tracelock.study.overview import Line, overview

_COLORS = {"faster": "green", "slower": "red"}


def print_summary(folder: Path, console: Console | None = None) -> None:
    """Print what a study came to.

    Parameters
    ----------
    folder
        The results folder, with its comparison.json.
    """
    console = console or Console(highlight=False)
    found = document.read(folder / "comparison.json")
    console.print(_table(found))
    for answer in found.answers:
        place = f"{answer.environment}: " if len(found.answers) > 1 else ""
        console.print(f"[bold]{escape(place + headline(found, answer))}[/bold]")
    for note in _notes(found):
        console.print(escape(note))
    console.print(f"Report: {escape(str(folder / 'report.html'))}", soft_wrap=True)


def _table(comparison: Comparison) -> Table:
    table = Table(title=escape(comparison.experiment), title_justify="left", header_style="bold", pad_edge=False)
    table.add_column("variant", overflow="fold", ratio=3)
    for name in ("step time", "throughput", "time vs baseline (95 %)", "loading"):
        table.add_column(name, justify="right", no_wrap=name != "time vs baseline (95 %)")
    table.add_column("finding", overflow="fold", ratio=2)
    table.add_column("remedy", overflow="fold", ratio=2)
    for line in overview(comparison):
        table.add_row(*_cells(comparison, line))
    return table


def _cells(comparison: Comparison, line: Line) -> tuple[str, ...]:
    case = line.case
    name = escape(label(case, len(comparison.environments)))
    lost = case.planned - case.runs
    name += f" [red]({plural(lost, 'run')} missing)[/red]" if lost else ""
    return (
        f"[bold]{name}[/bold]" if case.baseline else name,
        time(case.step.value if case.step else None),
        rate(case.throughput.value if case.throughput else None),
        _against(line),
        percent(case.loading.timed),
        escape(case.explained.finding or UNKNOWN),
        escape(line.remedy_text or UNKNOWN),
    )


def _against(line: Line) -> str:
    if line.against is None:
        return "baseline" if line.case.baseline else UNKNOWN
    found = line.against.difference
    text = f"×{ratio(found.ratio.value)} ({ratio_interval(found.ratio)})"
    word = found.verdict or "not judged"
    color = _COLORS.get(word)
    return f"{text} [{color}]{word}[/{color}]" if color else f"{text} {word}"


def _notes(comparison: Comparison) -> list[str]:
    notes = [comparison.method.few_runs]
    for place in comparison.environments:
        if place.unlocked:
            notes.append(f"{UNLOCKED} UNLOCKED: {place.name} {place.note}.")
    for run in comparison.missing:
        log = f"; log: {run.log}" if run.log else ""
        notes.append(f"missing: {run.environment}/{run.variant}/{run.repeat}: {run.reason}{log}")
    return notes
