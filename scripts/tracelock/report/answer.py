"""The answer in a few sentences: what is slow, why, what to change, how much it brings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tracelock.report.text import percent, ratio, ratio_interval, saved, throughput, time, time_interval
from tracelock.study.comparison import Answer, Comparison, FindingRow, RemedyRow
from tracelock.study.overview import remedy_text, settings_text
from tracelock.study.records import Edge
from tracelock.study.stats import Interval

HEALTHY = "no-bottleneck"


@dataclass(frozen=True)
class Part:
    """A question and its answer; `facts` support it."""

    question: str
    answer: str
    facts: tuple[str, ...] = ()


def answer_parts(comparison: Comparison, answer: Answer) -> list[Part]:
    """Return the answer for one environment."""
    path = tested_path(comparison, answer)
    if path:
        return [_slow(answer), _why(comparison, answer), _path_change(path), _path_brings(path)]
    return [_slow(answer), _why(comparison, answer), _change(answer), _brings(comparison, answer)]


def headline(comparison: Comparison, answer: Answer) -> str:
    """Return the answer in one or two sentences: the cause, and what the best that was measured brings."""
    cause = f"{answer.finding.title}." if answer.finding else f"Not explained: {_unexplained(comparison, answer)}."
    path = tested_path(comparison, answer)
    if path:
        return f"{cause} {settings_text(_together(path))} takes {_path_saved(path)}."
    if answer.best:
        return f"{cause} {settings_text(_changed(answer))} takes {saved(answer.best.difference.ratio)}."
    if answer.finding and answer.finding.code == HEALTHY:
        return cause
    return f"{cause} Nothing that was measured is clearly faster than the baseline."


def tested_path(comparison: Comparison, answer: Answer) -> tuple[Edge, ...]:
    """Return the remedies that led furthest, where they lead further than the variants of the study itself."""
    remedies = comparison.remedies
    if remedies is None or not remedies.path or answer.environment != comparison.environments[0].name:
        return ()
    ratio = _product(remedies.path)
    if ratio is None or (answer.best and answer.best.difference.ratio.value <= ratio):
        return ()
    return remedies.path


def _product(path: Sequence[Edge]) -> float | None:
    ratios = [edge.ratio for edge in path if edge.ratio is not None]
    return math.prod(ratios) if len(ratios) == len(path) else None


def _together(path: Sequence[Edge]) -> dict[str, object]:
    changed: dict[str, object] = {}
    for edge in path:
        changed |= edge.settings
    return changed


def _path_saved(path: Sequence[Edge]) -> str:
    """Return what a path saves: with its interval where it is one step, as a product where it is several."""
    first = path[0]
    if len(path) == 1 and first.ratio is not None and first.ratio_low is not None and first.ratio_high is not None:
        return saved(Interval(first.ratio, first.ratio_low, first.ratio_high))
    return f"{percent(1 - (_product(path) or 1.0))} less time (product of {len(path)} measured steps)"


def _path_change(path: Sequence[Edge]) -> Part:
    facts = [f"{settings_text(edge.settings)}, against {edge.finding or 'no finding'}" for edge in path]
    return Part("What to change", f"Set {settings_text(_together(path))}.", tuple(facts) if len(path) > 1 else ())


def _path_brings(path: Sequence[Edge]) -> Part:
    facts = []
    for edge in path:
        ends = "" if edge.ratio_low is None else f" ({ratio(edge.ratio_low)}–{ratio(edge.ratio_high)})"
        facts.append(f"{settings_text(edge.settings)}: time ×{ratio(edge.ratio)}{ends}, {edge.verdict or 'not judged'}")
    return Part("What it brings", f"{_path_saved(path)}, each step measured beside its starting point.", tuple(facts))


def _slow(answer: Answer) -> Part:
    case = answer.case
    if case.step is None:
        return Part("What is slow", "The baseline has no finished run; nothing can be compared with it.")
    text = f"A step of the baseline takes {time(case.step.value)} ({time_interval(case.step)})"
    if case.throughput:
        text += f", {throughput(case.throughput)}"
    facts = []
    if case.loading.timed is not None:
        facts.append(
            f"{percent(case.loading.timed)} of the step waits for the next batch, measured without the profiler"
        )
    if case.explained.device:
        facts.append(f"the GPU works {percent(case.explained.device.utilization)} of the profiled steps")
    return Part("What is slow", f"{text}.", tuple(facts))


def _unexplained(comparison: Comparison, answer: Answer) -> str:
    """Return why the baseline has no finding: the first reason that its runs give."""
    start = "/".join(("runs", *answer.case.key, ""))
    reasons = [why for key, why in comparison.unknown.items() if key.startswith(start)]
    if not reasons:
        return "the baseline has no finished run"
    return f"no analysis of the baseline can be used ({reasons[0]})"


def _why(comparison: Comparison, answer: Answer) -> Part:
    finding = answer.finding
    if finding is None:
        return Part("Why", f"Unknown: {_unexplained(comparison, answer)}.")
    seen = f"seen in {finding.runs} of {finding.analysed} traces, confidence {finding.confidence}"
    return Part("Why", f"{finding.title} ({seen}).", finding.evidence)


def _change(answer: Answer) -> Part:
    if answer.best:
        return Part("What to change", f"Set {settings_text(_changed(answer))}.", _advice(answer.finding))
    if answer.finding and answer.finding.remedies:
        first, *others = answer.finding.remedies
        facts = tuple(f"or {_advised(remedy)}" for remedy in others)
        return Part("What to change", f"Advice, not measured to help: {_advised(first)}.", facts)
    if answer.finding is None:
        return Part("What to change", "Unknown, as the cause is.")
    return Part("What to change", "Nothing: no cause was found that a change would remove.")


def _advised(remedy: RemedyRow) -> str:
    text = remedy_text(remedy)
    return text if text == remedy.expect else f"{text} ({remedy.expect})"


def _advice(finding: FindingRow | None) -> tuple[str, ...]:
    """Return the remedies of the main finding that were measured, with what they brought alone."""
    facts = []
    for remedy in finding.remedies if finding else ():
        if remedy.difference:
            found = remedy.difference
            outcome = saved(found.ratio) if found.verdict == "faster" else found.verdict or found.why
            facts.append(f"{settings_text(remedy.settings)} alone: {outcome}")
    return tuple(facts)


def _brings(comparison: Comparison, answer: Answer) -> Part:
    best = answer.best
    if best is None:
        return Part(
            "What it brings",
            "No variant of the study is clearly faster than the baseline.",
            _unclear(comparison, answer),
        )
    found = best.difference.ratio
    text = f"{saved(found)} per {'sample' if best.metric == 'time per sample' else 'step'}"
    text += f": {1 / found.value:.2f} times as fast ({1 / found.high:.2f}–{1 / found.low:.2f})"
    runs = f"{best.runs} runs against {best.reference_runs} of the baseline, p = {best.difference.p_value:.2g}"
    case = next(case for case in comparison.cases if case.key == best.key)
    facts = [runs]
    if case.explained.finding:
        facts.append(f"what is left then: {case.explained.title}")
    return Part("What it brings", f"{text}.", tuple(facts))


def _unclear(comparison: Comparison, answer: Answer) -> tuple[str, ...]:
    """Return the lowest time that was measured, where only uncertainty keeps it from being an answer."""
    rows = [row for row in comparison.comparisons if row.within and row.environment == answer.environment]
    lowest = min(rows, key=lambda row: row.difference.ratio.value, default=None)
    if lowest is None or lowest.difference.ratio.value >= 1:
        return ()
    found = lowest.difference
    change = settings_text({name: after for name, (_, after) in lowest.changed.items()})
    return (f"lowest: {change}, time ×{ratio(found.ratio.value)} ({ratio_interval(found.ratio)}); {found.why}",)


def _changed(answer: Answer) -> dict[str, object]:
    return {name: after for name, (_, after) in answer.best.changed.items()} if answer.best else {}
