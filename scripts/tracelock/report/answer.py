"""The answer in a few sentences: what is slow, why, what to change, how much it brings, and what comes next."""

from __future__ import annotations

from dataclasses import dataclass

from tracelock.report.path import HEALTHY, BestPath, best_path, cures, why_faster
from tracelock.report.text import percent, ratio, ratio_interval, saved, throughput, time, time_interval
from tracelock.study.comparison import Answer, Comparison, FindingRow, RemedyRow
from tracelock.study.overview import remedy_text, settings_text
from tracelock.study.records import Edge


@dataclass(frozen=True)
class Part:
    """A question and its answer; `facts` support it."""

    question: str
    answer: str
    facts: tuple[str, ...] = ()


def answer_parts(comparison: Comparison, answer: Answer) -> list[Part]:
    """Return the answer for one environment; the best, the path to it and the next step are told once."""
    path = best_path(comparison, answer)
    told = [_slow(answer), _why(comparison, answer), _change(answer, path), _brings(comparison, answer, path)]
    return [*told, *_next(path)]


def headline(comparison: Comparison, answer: Answer) -> str:
    """Return the answer in one or two sentences. A cause stands beside a change only where the change removes it."""
    finding = answer.finding
    cause = f"{finding.title}." if finding else f"Not explained: {_unexplained(comparison, answer)}."
    path = best_path(comparison, answer)
    if not path.edges:
        if finding and finding.code == HEALTHY:
            return cause
        return f"{cause} Nothing that was measured is clearly faster than the baseline."
    what = f"{settings_text(path.settings)} takes {path.saved}"
    if _cured(answer, path):
        return f"{cause} {what}."
    remedy = _helped(finding)
    if remedy and remedy.difference:
        alone = f"{settings_text(remedy.settings)} takes {saved(remedy.difference.ratio)}"
        return f"{cause} {alone}; the fastest, {what}."
    reason = _reason(comparison, answer)
    return (
        f"The fastest is {settings_text(path.settings)}: {path.saved} per {path.per}{f'; {reason}' if reason else ''}."
    )


def _cured(answer: Answer, path: BestPath) -> bool:
    """Return whether every edge of the path is a remedy of the cause that is named, or of what followed it."""
    first, *others = path.edges
    if first.kind == "remedy":
        return answer.finding is not None and first.finding == answer.finding.code
    return all(edge.kind == "remedy" for edge in others) and cures(answer.finding, first.settings, answer.case.settings)


def _helped(finding: FindingRow | None) -> RemedyRow | None:
    """Return the remedy of the main finding that helped most as a variant of the study."""
    tested = [one for one in (finding.remedies if finding else ()) if one.difference]
    faster = [one for one in tested if one.difference and one.difference.verdict == "faster"]
    return min(faster, key=lambda one: one.difference.ratio.value if one.difference else 1.0, default=None)


def _reason(comparison: Comparison, answer: Answer) -> str:
    """Return why the fastest variant of the study is faster, from the traces of both."""
    if answer.best is None:
        return ""
    after = next((case for case in comparison.cases if case.key == answer.best.key), None)
    return why_faster(comparison, answer.case, after) if after else ""


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
    where = [f"recorded once more, with Python stacks: {finding.placed}"] if finding.placed else []
    return Part("Why", f"{finding.title} ({seen}).", (*where, *finding.evidence))


def _change(answer: Answer, path: BestPath) -> Part:
    if path.edges:
        facts = [_edge_kind(edge) for edge in path.edges] if len(path.edges) > 1 or not _cured(answer, path) else []
        return Part("What to change", f"Set {settings_text(path.settings)}.", (*facts, *_advice(answer.finding)))
    if answer.finding and answer.finding.remedies:
        first, *others = answer.finding.remedies
        facts = [f"or {_advised(remedy)}" for remedy in others]
        return Part("What to change", f"Advice, not measured to help: {_advised(first)}.", tuple(facts))
    if answer.finding is None:
        return Part("What to change", "Unknown, as the cause is.")
    return Part("What to change", "Nothing: no cause was found that a change would remove.")


def _edge_kind(edge: Edge) -> str:
    settings = settings_text(edge.settings)
    if edge.kind == "factor":
        return f"{settings}: a factor of the study, which was fastest"
    return f"{settings}: a remedy of the diagnosis, against {edge.finding or 'no finding'}"


def _advised(remedy: RemedyRow) -> str:
    text = remedy_text(remedy)
    return text if text == remedy.expect else f"{text} ({remedy.expect})"


def _advice(finding: FindingRow | None) -> tuple[str, ...]:
    """Return the remedies of the main finding that were measured, with what they brought alone."""
    facts = []
    for remedy in finding.remedies if finding else ():
        if remedy.difference:
            found = remedy.difference
            outcome = saved(found.ratio) if found.verdict == "faster" else found.words
            facts.append(f"{settings_text(remedy.settings)} alone: {outcome}")
    return tuple(facts)


def _brings(comparison: Comparison, answer: Answer, path: BestPath) -> Part:
    if not path.edges:
        return Part(
            "What it brings",
            "Nothing that was measured is clearly faster than the baseline.",
            _open(comparison, answer),
        )
    facts = [_edge_brings(edge) for edge in path.edges] if len(path.edges) > 1 else []
    best = answer.best
    if best and path.edges[0].target == best.variant:
        found = best.difference
        facts.append(f"{best.runs} runs against {best.reference_runs} of the baseline; {found.strength}")
        if reason := _reason(comparison, answer):
            facts.append(f"why it is faster: {reason}")
    elif path.edges[0].kind == "remedy":
        facts.append("each step was measured beside its starting point")
    return Part("What it brings", f"{path.saved} per {path.per}{_times(path)}.", tuple(facts))


def _times(path: BestPath) -> str:
    first = path.edges[0]
    if len(path.edges) > 1 or not first.ratio or not first.ratio_low or not first.ratio_high:
        return ""
    return f": {1 / first.ratio:.2f} times as fast ({1 / first.ratio_high:.2f}–{1 / first.ratio_low:.2f})"


def _edge_brings(edge: Edge) -> str:
    ends = "" if edge.ratio_low is None else f" ({ratio(edge.ratio_low)}–{ratio(edge.ratio_high)})"
    return f"{settings_text(edge.settings)}: time ×{ratio(edge.ratio)}{ends}, {edge.verdict or 'not judged'}"


def _next(path: BestPath) -> list[Part]:
    """Return the one next step, from the best that was measured."""
    left = path.left
    if left is None or not path.edges:
        return []
    where = f"With {settings_text(path.settings)}"
    if left.finding == HEALTHY:
        return [Part("Next step", f"None known. {where}: {_lower(left.title)}.")]
    advice = f"Next to try: {left.advice}." if left.advice else "All that the diagnosis proposes against it was tried."
    return [Part("Next step", f"{where} the main cause is then: {_lower(left.title)}. {advice}")]


def _lower(title: str) -> str:
    return title[:1].lower() + title[1:] if title[1:2].islower() else title


def _open(comparison: Comparison, answer: Answer) -> tuple[str, ...]:
    """Return the lowest time that was measured, with what keeps it from being an answer."""
    rows = [row for row in comparison.comparisons if row.within and row.environment == answer.environment]
    lowest = min(rows, key=lambda row: row.difference.ratio.value, default=None)
    if lowest is None or lowest.difference.ratio.value >= 1:
        return ()
    found = lowest.difference
    change = settings_text({name: after for name, (_, after) in lowest.changed.items()})
    told = f"lowest: {change}, time ×{ratio(found.ratio.value)} ({ratio_interval(found.ratio)}), {found.words}"
    return (f"{told}; {found.why}",)
