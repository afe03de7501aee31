"""The end of a study in the terminal: a line for each variant, the answer, and where the report lies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tracelock.report.answer import headline
from tracelock.report.kept import traces_text
from tracelock.report.text import UNKNOWN, UNLOCKED, mark, percent, rate, ratio, ratio_interval, shorten, time
from tracelock.study import comparison as document
from tracelock.study.comparison import Comparison
from tracelock.study.overview import SHOWN, Line, chosen, chosen_text, losses, noise_text, overview, value_text

_COLORS = {"faster": "green", "slower": "red"}


def print_summary(folder: Path, console: Console | None = None, brief: bool = False) -> None:
    """Print what a study came to.

    Parameters
    ----------
    folder
        The results folder, with its comparison.json.
    brief
        Print the answer and the place of the report alone.
    """
    console = console or Console(highlight=False)
    found = document.read(folder / "comparison.json")
    if brief:
        _print_answers(found, console)
        console.print(f"Report: {escape(str(folder / 'report.html'))}", soft_wrap=True)
        return
    lines = chosen(overview(found))
    table = _table(found, lines, wide=True)
    unbounded = console.options.update(max_width=10_000)
    if console.measure(table, options=unbounded).maximum <= console.width:
        console.print(table)
    else:
        console.print(_table(found, lines, wide=False))
        for text in _findings(lines):
            console.print(escape(text))
        console.print()
    _print_answers(found, console)
    for line in _remedies(found):
        console.print(escape(line))
    notes = _notes(found)
    for note in notes[:SHOWN]:
        console.print(escape(note))
    if len(notes) > SHOWN:
        console.print(f"and {len(notes) - SHOWN} more of this kind, in comparison.json")
    console.print(f"Report: {escape(str(folder / 'report.html'))}", soft_wrap=True)


def _print_answers(found: Comparison, console: Console) -> None:
    for answer in found.answers:
        place = f"{answer.environment}: " if len(found.answers) > 1 else ""
        console.print(f"[bold]{escape(place + headline(found, answer))}[/bold]")
        if answer.finding and answer.finding.placed:
            console.print(escape(f"Recorded once more, with Python stacks: {answer.finding.placed}."))


def _table(comparison: Comparison, lines: Sequence[Line], wide: bool) -> Table:
    """Return a row a variant; in a narrow terminal without intervals, findings and remedies, but numbered."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1 + wide, 0, 0), header_style="bold")
    table.title, table.title_justify = escape(comparison.experiment), "left"
    if not wide:
        table.add_column("#", justify="right")
    for name in _settings(comparison):
        table.add_column(escape(name.replace("_", "\n")), overflow="fold")
    for name in ("step\ntime", "through-\nput", "time against\nbaseline", "waits\nfor data"):
        table.add_column(name, justify="right", overflow="fold")
    for name in ("finding", "remedy") if wide else ():
        table.add_column(name, overflow="fold", max_width=36)
    for number, line in enumerate(lines, start=1):
        cells = _cells(comparison, line, wide)
        table.add_row(*cells if wide else (str(number), *cells), style="bold" if line.case.baseline else "")
    return table


def _settings(comparison: Comparison) -> list[str]:
    """Return the headings of what distinguishes the variants."""
    several = ["environment"] if len(comparison.environments) > 1 else []
    return [*several, *(comparison.factors or ["variant"])]


def _cells(comparison: Comparison, line: Line, wide: bool) -> tuple[str, ...]:
    case = line.case
    settings = [value_text(value) for value in case.factors.values()] or [case.variant]
    if len(comparison.environments) > 1:
        settings.insert(0, case.environment)
    settings[0] += mark(case.unlocked)
    lost = case.planned - case.runs
    found = (escape(case.explained.finding or UNKNOWN), escape(line.remedy_text or UNKNOWN))
    return (
        *(escape(shorten(text, 24)) for text in settings),
        time(case.step.value if case.step else None) + (f"\n{lost} of {case.planned} missing" if lost else ""),
        rate(case.throughput.value if case.throughput else None),
        _against(line, wide),
        percent(case.loading.timed),
        *(found if wide else ()),
    )


def _against(line: Line, wide: bool) -> str:
    if line.against is None:
        return "baseline" if line.case.baseline else UNKNOWN
    found = line.against.difference
    word = found.verdict or "not judged"
    color = _COLORS.get(word)
    interval = f" ({ratio_interval(found.ratio)})" if wide else ""
    verdict = f"[{color}]{word}[/{color}]" if color else word
    return f"×{ratio(found.ratio.value)}{interval} {verdict}"


def _findings(lines: Sequence[Line]) -> list[str]:
    """Return a line for each pair of finding and remedy, with the numbers of the variants that have it."""
    numbers: dict[tuple[str, str], list[int]] = {}
    for number, line in enumerate(lines, start=1):
        key = (line.case.explained.finding or "not explained", line.remedy_text or "")
        numbers.setdefault(key, []).append(number)
    return [
        f"{finding} (# {', '.join(map(str, rows))})" + (f": {remedy}" if remedy else "")
        for (finding, remedy), rows in numbers.items()
    ]


def _remedies(comparison: Comparison) -> list[str]:
    """Return a line for each remedy that was run, and why no further one was."""
    if comparison.remedies is None:
        return []
    lines = []
    for one in comparison.remedies.rounds:
        for tried in one.tried:
            settings = ", ".join(f"{name}={value_text(value)}" for name, value in tried.settings.items())
            known = None not in (tried.ratio, tried.ratio_low, tried.ratio_high)
            measured = f"×{tried.ratio:.2f} ({tried.ratio_low:.2f}–{tried.ratio_high:.2f})" if known else "not measured"
            lines.append(f"remedy {settings}: {measured} {tried.verdict or tried.why or ''}".rstrip())
    stopped = f"no further remedy: {comparison.remedies.stopped}"
    return [*lines, stopped] if comparison.remedies.stopped else lines


def _notes(comparison: Comparison) -> list[str]:
    left_out = chosen_text(overview(comparison))
    notes = [note for note in (left_out, comparison.method.few_runs, noise_text(comparison)) if note]
    for place in comparison.environments:
        if place.unlocked:
            notes.append(f"{UNLOCKED} UNLOCKED: {place.name} {place.note}.")
    for run in comparison.disturbed():
        where = f"{run.environment}/{run.variant}/{run.repeat}"
        notes.append(f"disturbed: {where}: {comparison.disturbance(run)}")
    for lost in losses(comparison):
        log = f"; log: {lost.log}" if lost.log else ""
        notes.append(f"missing: {lost.case}, {lost.runs}: {lost.reason}{log}")
    kept = traces_text(comparison)
    notes += [f"traces: {kept}"] if kept else []
    return notes
