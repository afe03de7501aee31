"""Two measurements of one study: the same conclusion, figure by figure, or what differs.

Ratios are compared, never times: another machine is faster or slower as a whole. A conclusion of the original is
*confirmed* by the same word, *contradicted* by one that excludes it, *open* where the second measurement cannot tell.
What the original itself left unclear concludes nothing, so nothing can contradict it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tracelock.study.comparison import Answer, Case, Comparison, ComparisonRow, FindingRow
from tracelock.study.overview import remedy_text
from tracelock.study.records import Edge
from tracelock.study.stats import Interval

Word: TypeAlias = Literal["confirmed", "contradicted", "open", "nothing to confirm"]
Verdict: TypeAlias = Literal["same", "differs", "undecided"]
CLEAR = ("faster", "slower", "no difference", "helped", "made it worse")  # the last two of remedies that were run


@dataclass(frozen=True)
class Row:
    """One conclusion. Figures are ratios or shares with their intervals, None where there is none."""

    kind: str  # difference, order, finding, remedy, best, path, loading
    where: str
    original: str
    again: str
    word: Word
    ratio: Interval | None = None
    ratio_again: Interval | None = None
    within: bool | None = None  # whether the intervals overlap


def judge(rows: list[Row]) -> Verdict:
    """Return the verdict over all conclusions."""
    words = {row.word for row in rows}
    if "contradicted" in words:
        return "differs"
    return "undecided" if "open" in words else "same"


def conclusions(original: Comparison, again: Comparison) -> list[Row]:
    """Return every conclusion of `original` beside what `again` says."""
    return [
        *_answers(original, again),
        *_differences(original, again),
        *_order(original, again),
        *_path(original, again),
        *_loading(original, again),
    ]


def _answers(original: Comparison, again: Comparison) -> Iterator[Row]:
    found = {one.environment: one for one in again.answers}
    for answer in original.answers:
        other = found.get(answer.environment)
        yield _texts(
            "finding", answer.environment, _code(answer.finding), _code(other.finding if other else None), other
        )
        if answer.finding and answer.finding.remedies:
            remedies = (_remedy(answer.finding), _remedy(other.finding if other else None))
            yield _texts("remedy", answer.environment, *remedies, other)
        yield _best(answer, other, original, again)


def _texts(kind: str, where: str, one: str, two: str, other: Answer | None) -> Row:
    word: Word = "open" if other is None else "confirmed" if one == two else "contradicted"
    return Row(kind, where, one, two if other else "not measured", word)


def _code(finding: FindingRow | None) -> str:
    return finding.code if finding else "none"


def _remedy(finding: FindingRow | None) -> str:
    return remedy_text(finding.remedies[0]) if finding and finding.remedies else "none"


def _best(answer: Answer, other: Answer | None, original: Comparison, again: Comparison) -> Row:
    """Compare the best variants: another one that is as fast within intervals is no contradiction."""
    one = answer.best.variant if answer.best else "the baseline"
    two = (other.best.variant if other.best else "the baseline") if other else "not measured"
    if other is None:
        return Row("best", answer.environment, one, two, "open")
    if one == two:
        return Row("best", answer.environment, one, two, "confirmed")
    if answer.best is None:
        return Row("best", answer.environment, one, two, _after_none(original, other))
    mine = _row(again, answer.best)
    equal = mine and other.best and overlap(mine.difference.ratio, other.best.difference.ratio)
    word: Word = "confirmed" if mine and mine.verdict == "faster" and equal else "open"
    if mine and mine.verdict in ("slower", "no difference"):
        word = "contradicted"
    return Row("best", answer.environment, one, f"{two} (as fast)" if word == "confirmed" else two, word)


def _after_none(original: Comparison, other: Answer) -> Word:
    """Return what a best variant says where the original has none: a variant that it called unclear may be one."""
    before = _row(original, other.best) if other.best else None
    return "contradicted" if before and before.verdict in CLEAR else "nothing to confirm"


def _row(comparison: Comparison, wanted: ComparisonRow) -> ComparisonRow | None:
    return next((row for row in comparison.comparisons if row.key == wanted.key and row.within == wanted.within), None)


def _differences(original: Comparison, again: Comparison) -> Iterator[Row]:
    for row in original.comparisons:
        other = _row(again, row)
        where = f"{row.variant} against {row.reference_variant}"
        where = where if row.within else f"{row.variant}: {row.environment} against {row.reference_environment}"
        if other is None:
            clear = row.verdict in CLEAR
            yield Row(
                "difference", where, row.difference.words, "not measured", "open" if clear else "nothing to confirm"
            )
            continue
        ratios = row.difference.ratio, other.difference.ratio
        word = compared(row.verdict, other.verdict)
        yield Row("difference", where, row.difference.words, other.difference.words, word, *ratios, overlap(*ratios))


def compared(original: str | None, again: str | None) -> Word:
    """Return what a second verdict says of the first."""
    if original not in CLEAR:
        return "nothing to confirm"
    if again not in CLEAR:
        return "open"
    return "confirmed" if original == again else "contradicted"


def overlap(one: Interval, other: Interval) -> bool:
    """Return whether two intervals have a point in common."""
    return one.low <= other.high and other.low <= one.high


def _order(original: Comparison, again: Comparison) -> Iterator[Row]:
    """Yield the pairs of variants whose order the original is sure of, where the second measurement reverses it."""
    rows = [row for row in original.comparisons if row.within]
    for number, first in enumerate(rows):
        for second in rows[number + 1 :]:
            if first.environment == second.environment:
                yield from _pair(first, second, again)


def _pair(first: ComparisonRow, second: ComparisonRow, again: Comparison) -> Iterator[Row]:
    fast, slow = sorted((first, second), key=lambda row: row.difference.ratio.value)
    if fast.difference.ratio.high >= slow.difference.ratio.low:
        return
    now = _row(again, fast), _row(again, slow)
    if now[0] is None or now[1] is None:
        return
    reversed_ = now[1].difference.ratio.high < now[0].difference.ratio.low
    kept = now[0].difference.ratio.high < now[1].difference.ratio.low
    word: Word = "contradicted" if reversed_ else "confirmed" if kept else "open"
    shown = "the same" if kept else "the reverse" if reversed_ else "not told apart"
    yield Row("order", fast.environment, f"{fast.variant} before {slow.variant}", shown, word)


def _path(original: Comparison, again: Comparison) -> Iterator[Row]:
    """Yield the remedies that were run and measured."""
    tried = {(edge.source, edge.target): edge for edge in _edges(again)}
    for edge in _edges(original):
        other = tried.get((edge.source, edge.target))
        word = compared(edge.verdict, other.verdict if other else None)
        ratios = _interval(edge), _interval(other)
        within = overlap(ratios[0], ratios[1]) if ratios[0] and ratios[1] else None
        said = (other.verdict or "not judged") if other else "not tried"
        yield Row("path", f"{edge.source} → {edge.target}", edge.verdict or "not judged", said, word, *ratios, within)


def _edges(comparison: Comparison) -> list[Edge]:
    rounds = comparison.remedies.rounds if comparison.remedies else ()
    return [edge for each in rounds for edge in each.tried]


def _interval(edge: Edge | None) -> Interval | None:
    if edge is None or edge.ratio is None or edge.ratio_low is None or edge.ratio_high is None:
        return None
    return Interval(edge.ratio, edge.ratio_low, edge.ratio_high)


def _loading(original: Comparison, again: Comparison) -> Iterator[Row]:
    """Yield the share of waiting for data: it explains, and concludes nothing by itself."""
    cases = {case.key: case for case in again.cases}
    for case in original.cases:
        ratios = _share(case), _share(cases.get(case.key))
        if ratios[0] and ratios[1]:
            shown = [f"{share.value:.0%} of the time" for share in ratios if share]
            within = overlap(ratios[0], ratios[1])
            yield Row("loading", case.variant, shown[0], shown[1], "nothing to confirm", *ratios, within)


def _share(case: Case | None) -> Interval | None:
    if case is None or case.loading.timed is None or case.loading.low is None or case.loading.high is None:
        return None
    return Interval(case.loading.timed, case.loading.low, case.loading.high)
