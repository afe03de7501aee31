"""A comparison of two sides as Markdown for a pull request and as JUnit XML for a CI server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

from tracelock.analysis.difference import Change
from tracelock.report.text import percent, plural, ratio, ratio_interval, time
from tracelock.study.overview import value_text
from tracelock.study.pair import CaseDifference, Pair

_NBSP = "\N{NO-BREAK SPACE}"


def headline(pair: Pair) -> str:
    """Return the verdict in one sentence."""
    if pair.cases:
        one = pair.cases[0]
        interval = f" ({ratio_interval(one.difference.ratio)})"
        told = (
            f"{one.metric} {time(one.before_us)} → {time(one.after_us)}, ×{ratio(one.difference.ratio.value)}{interval}"
        )
        runs = f"{plural(one.before_runs, 'run')} against {one.after_runs}"
        return f"{one.name}: {told}: {_words(one)}; {runs}.".replace(_NBSP, " ")
    if pair.changed is None:
        return "Nothing to compare: a side has no analysis."
    found = pair.changed
    told = f"{found.unit} {time(found.before_us)} → {time(found.after_us)}, ×{ratio(found.ratio)}"
    return f"{told}; {pair.verdict}.".replace(_NBSP, " ")


def largest(rows: Sequence[Change], top: int) -> list[Change]:
    """Return the rows that changed most."""
    return [row for row in rows if row.change_us][:top]


def markdown(pair: Pair, top: int, failed: Sequence[str], limit: float | None) -> str:
    """Return the comparison as Markdown (GitHub's tables)."""
    return "\n".join(_lines(pair, top, failed, limit)).replace(_NBSP, " ") + "\n"


def junit(pair: Pair, failed: Sequence[str], limit: float | None) -> str:
    """Return the comparison as JUnit XML: a test case for each case, failed where it is slower than `limit` allows."""
    names = [one.name for one in pair.cases] or [pair.after]
    texts = {one.name: _case_text(one) for one in pair.cases}
    rows = []
    for name in names:
        text = escape(_clean(texts.get(name, headline(pair))))
        body = f"<system-out>{text}</system-out>"
        if name in failed:
            message = quoteattr(f"takes more than {percent(limit)} longer".replace(_NBSP, " "))
            body = f'<failure message={message} type="slower">{text}</failure>'
        rows.append(f'  <testcase classname="tracelock.compare" name={quoteattr(_clean(name))}>{body}</testcase>')
    head = f'<testsuite name="tracelock compare" tests="{len(names)}" failures="{len(failed)}" errors="0" skipped="0">'
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *rows, "</testsuite>"]) + "\n"


def _lines(pair: Pair, top: int, failed: Sequence[str], limit: float | None) -> Iterator[str]:
    yield f"**{_cell(headline(pair))}**"
    if limit is not None:
        outcome = f"failed: {', '.join(map(_cell, failed))}" if failed else "passed"
        yield f"\nGate at {percent(limit)}: {outcome}."
    for note in pair.notes:
        yield f"\n> {_cell(note)}"
    if len(pair.cases) > 1:
        yield "\n| variant | before | after | ratio | verdict |\n| --- | ---: | ---: | ---: | --- |"
        for one in pair.cases:
            figures = (time(one.before_us), time(one.after_us), _ratio(one))
            yield f"| {_cell(one.name)} | {' | '.join(figures)} | {_words(one)} |"
    if pair.changed:
        yield from _table(f"Where the {pair.changed.unit} changed", pair.changed.parts, top)
        yield from _table(f"Operators ({pair.changed.operator_time})", pair.changed.operators, top)
        yield from _table("Kernels", pair.changed.kernels, top)
    if pair.settings:
        yield "\n| setting | before | after |\n| --- | --- | --- |"
        yield from (
            f"| {_cell(n)} | {_cell(value_text(a))} | {_cell(value_text(b))} |" for n, (a, b) in pair.settings.items()
        )
    if pair.packages:
        yield "\n| package | before | after |\n| --- | --- | --- |"
        yield from (f"| {_cell(n)} | {_cell(a or '–')} | {_cell(b or '–')} |" for n, (a, b) in pair.packages.items())


def _table(title: str, changes: Sequence[Change], top: int) -> Iterator[str]:
    rows = largest(changes, top)
    if not rows:
        return
    yield f"\n| {title} | before | after | share of the difference |\n| --- | ---: | ---: | ---: |"
    for row in rows:
        name = row.name if row.other_name is None else f"{row.name} → {row.other_name}"
        yield f"| {_cell(name)} | {time(row.before_us)} | {time(row.after_us)} | {percent(row.share)} |"


def _case_text(one: CaseDifference) -> str:
    told = f"{time(one.before_us)} -> {time(one.after_us)}, ratio {_ratio(one)}, {_words(one)}"
    return f"{told}; {one.difference.why}" if one.difference.why else told


def _words(one: CaseDifference) -> str:
    return one.difference.words if one.difference.verdict else f"not judged: {one.difference.why}"


def _ratio(one: CaseDifference) -> str:
    return f"×{ratio(one.difference.ratio.value)} ({ratio_interval(one.difference.ratio)})"


def _cell(text: str) -> str:
    """Return a name as text of a Markdown table: no markup, no new cell, no new line."""
    text = escape(" ".join(text.split()))
    for sign in "\\`*_[]|~":
        text = text.replace(sign, f"\\{sign}")
    return text


def _clean(text: str) -> str:
    """Return `text` without what XML cannot hold."""
    kept = (
        sign if sign >= " " and sign not in "\ufffe\uffff" and not "\ud800" <= sign <= "\udfff" else " "
        for sign in text
    )
    return "".join(kept)
