"""The work of ``tracelock compare``: two sides, beside each other."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
from rich.console import Console
from rich.text import Text

from tracelock.analysis.analyze import analyze
from tracelock.analysis.difference import ROLE, Change
from tracelock.analysis.parts import STEP_HEADS
from tracelock.cli import _format as fmt
from tracelock.cli._grid import Section, grid, more
from tracelock.cli._progress import reading
from tracelock.cli._quiet import quiet
from tracelock.cli._show import _section
from tracelock.diagnosis import Diagnosed, diagnose
from tracelock.diagnosis.recorded import recorded_beside
from tracelock.errors import EXIT_FAILED, Problem, TracelockError
from tracelock.io import schema, stable_json, write_text
from tracelock.report.pair import headline, junit, largest, markdown
from tracelock.study.overview import value_text
from tracelock.study.pair import CaseDifference, Pair, compare_sides
from tracelock.study.sides import read_side
from tracelock.trace import open_trace


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    before: Path
    after: Path
    top: int = 10
    json: bool = False
    markdown: bool = False
    junit: Path | None = None
    fail_above: str | None = None
    anyway: bool = False
    cache: bool = False


def run(request: Request) -> int:
    """Compare, tell, and return the exit code: 1 where the second side is slower than is allowed."""
    limit = None if request.fail_above is None else share_of(request.fail_above)
    analyse = partial(_analyse, cache=request.cache)
    pair = compare_sides(read_side(request.before, analyse), read_side(request.after, analyse), request.anyway)
    failed = [] if limit is None else pair.above(limit)
    if request.junit is not None:
        write_text(request.junit, junit(pair, failed, limit))
    if request.json:
        gate = None if limit is None else {"limit": limit, "failed": failed}
        sys.stdout.write(stable_json({"schema": schema("pair"), "gate": gate, **msgspec.to_builtins(pair)}))
    elif request.markdown:
        sys.stdout.write(markdown(pair, request.top, failed, limit))
    elif quiet():
        print(headline(pair))
    else:
        _show(pair, request.top, failed, limit)
    return EXIT_FAILED if failed else 0


def share_of(text: str) -> float:
    """Return ``5%``, ``5 %`` or ``0.05`` as a share.

    Raises
    ------
    TracelockError
        If it is neither.
    """
    bare = text.strip()
    try:
        value = float(bare.removesuffix("%")) / (100 if bare.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value < 10:
        raise TracelockError(Problem("--fail-above", f"is {text!r}, expected a share", "write 5% or 0.05"))
    return value


def _analyse(path: Path, *, cache: bool) -> Diagnosed:
    recorded = recorded_beside(path)
    with reading(path.name) as progress:
        trace = open_trace(path, progress, keep=cache)
        progress.analysing()
        return diagnose(analyze(trace), run=recorded.run, samples=recorded.samples)


def _show(pair: Pair, top: int, failed: Sequence[str], limit: float | None) -> None:
    console = Console(highlight=False, markup=False, emoji=False)
    console.print(Text(headline(pair), "bold"))
    console.print(Text(f"before: {pair.before}\nafter:  {pair.after}", "dim"))
    for note in pair.notes:
        console.print(Text(f"note: {note}", "yellow"))
    for title, table in _sections(pair, top):
        _section(console, title, table)
    for where, names in (("before", pair.only_before), ("after", pair.only_after)):
        if names:
            console.print(Text(f"only {where}: {', '.join(names)}"))
    if limit is not None:
        console.print()
        outcome = f"FAILED: {', '.join(failed)}" if failed else "passed"
        console.print(Text(f"Gate at {fmt.share(limit)}: {outcome}", "bold red" if failed else "bold green"))


def _sections(pair: Pair, top: int) -> Iterator[Section]:
    if len(pair.cases) > 1 or any(one.difference.why for one in pair.cases):
        yield "Cases", grid(("", "before", "after", "ratio", "verdict"), map(_case, pair.cases), folded=(0, 4))
    found = pair.changed
    if found:
        rows = [_row(row, STEP_HEADS.get(row.name, row.name)) for row in largest(found.parts, top)]
        yield f"Where the {found.unit} changed", grid(_HEAD, rows)
        for title, rows_of in ((f"Operators, {found.operator_time}", found.operators), ("Kernels", found.kernels)):
            changed = largest(rows_of, len(rows_of))
            if changed:
                rows = [_row(row, _name(row)) for row in changed[:top]]
                yield more(f"{title}, per {found.unit}", top, len(changed)), grid(_HEAD, rows)
    if pair.settings:
        values = [(name, value_text(one), value_text(other)) for name, (one, other) in pair.settings.items()]
        yield "Settings that differ", grid(("", "before", "after"), values)
    if pair.packages:
        packages = [(name, one or fmt.UNKNOWN, other or fmt.UNKNOWN) for name, (one, other) in pair.packages.items()]
        yield "Packages that differ", grid(("", "before", "after"), packages)


_HEAD = ("", "before", "after", "change", "share")


def _case(one: CaseDifference) -> tuple[str, ...]:
    ratio = one.difference.ratio
    told = one.difference.words if one.difference.verdict else "not judged"
    why = f": {one.difference.why}" if one.difference.why else ""
    interval = f"×{ratio.value:.2f} ({ratio.low:.2f}–{ratio.high:.2f})"
    return one.name, fmt.time(one.before_us), fmt.time(one.after_us), interval, told + why


def _row(row: Change, name: str) -> tuple[str, ...]:
    change = f"{'+' if row.change_us > 0 else '−'}{fmt.time(abs(row.change_us))}"
    share = fmt.UNKNOWN if row.share is None else f"{100 * row.share:.1f} %"
    return name, fmt.time(row.before_us), fmt.time(row.after_us), change, share


def _name(row: Change) -> str:
    if row.before_us is None or row.after_us is None:
        return f"{fmt.kernel(row.name)} ({'after' if row.before_us is None else 'before'} only)"
    if row.other_name is None:
        return fmt.kernel(row.name)
    sign = "≈" if row.matched == ROLE else "→"
    return f"{fmt.kernel(row.name)} {sign} {fmt.kernel(row.other_name)}"
