"""Which causes a diagnosis names, in the order of what removing each should bring beyond those before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.confidence import Level, level
from tracelock.diagnosis.measures import severity
from tracelock.diagnosis.model import Evidence, Finding
from tracelock.diagnosis.rule import Cause, Rule, all_rules
from tracelock.diagnosis.trust import is_doubtful, withheld

EXPECTED = 0.8  # of `min_gain`: what a bound allows, but nothing is expected to bring, is not shown
LEAST = 0.01  # of the whole step
LITTLE = 0.05  # of the step
MOST = 0.6  # of the estimate: what accounts for less of it is one reason of several


@dataclass(frozen=True)
class Found:
    """A cause with its rule, its bound, and what its removal is expected to bring."""

    rule: Rule
    cause: Cause
    gain: float | None
    estimate: float | None = None  # beyond the causes before it

    def finding(self, case: Case, others: Sequence[Found] = ()) -> Finding:
        """Return it as the document has it, beside the `others`."""
        cause = self.cause
        return Finding(
            code=self.rule.code,
            title=cause.title,
            severity=cause.severity or severity(case, self.gain),
            share_of_step=cause.share,
            gain_at_most=self.gain,
            gain_estimate=self.estimate,
            confidence="low" if is_doubtful(case) else self._level(case, others),
            evidence=cause.evidence,
            remedies=cause.remedies,
        )

    def _level(self, case: Case, others: Sequence[Found]) -> Level:
        return level(case, self.rule.code, self.estimate, [each.estimate for each in others], self.cause.confidence)

    @property
    def chained(self) -> Removal | None:
        """Return what the removal takes off the chains of a step, None where its gain is known otherwise."""
        return None if self.cause.gain is not None else self.cause.removal

    @property
    def likely(self) -> Removal:
        """Return what the removal is expected to take off the chains."""
        return self.cause.likely or self.chained or Removal()


def main_causes(case: Case) -> list[Found]:
    """Return the causes of a case, the one whose removal should bring most first, without what others explain."""
    if withheld(case) is not None:
        return []
    found = [Found(rule, cause, _gain(case, cause)) for rule in all_rules() if (cause := rule.examine(case))]
    found = [each for each in found if _is_worth(case, each)]
    alone = {each.rule.code: _estimate(case, Removal(), each) for each in found}
    explained = {code for each in found for code in each.rule.explains if _explains(each, code, alone)}
    explained |= {code for each in found for code in each.cause.explains}
    return _in_order(case, [each for each in found if each.rule.code not in explained])


def _explains(found: Found, code: str, alone: Mapping[str, float | None]) -> bool:
    """Return whether a cause accounts for `MOST` of what another one costs: a third of it explains no whole."""
    own, other = found.gain if found.chained is None else alone[found.rule.code], alone.get(code)
    return own is None or other is None or own >= MOST * other


def _gain(case: Case, cause: Cause) -> float | None:
    if cause.gain is not None or cause.removal is None:
        return cause.gain
    return case.gain(cause.removal)


def _is_worth(case: Case, found: Found) -> bool:
    """Return whether the bound of a cause reaches ``min_gain``, where the cause is one of lost time."""
    return found.rule.always or found.gain is None or found.gain >= case.limits.min_gain


def _in_order(case: Case, found: Iterable[Found]) -> list[Found]:
    """Return those of `found` that could still gain something once all before them are removed, in order.

    The next one is always the one that is expected to bring most beyond those before it: a wait that two causes share
    is counted once. Where the bound of that is below ``min_gain`` the cause is a symptom: a wait that costs only
    because the loader holds the host up.
    """
    left, kept = list(found), list[Found]()
    likely = Removal()
    while left:
        valued = [replace(each, estimate=_estimate(case, likely, each)) for each in left]
        best = min(valued, key=_rank)
        left = [each for each in left if each.rule is not best.rule]
        if best.chained is None or best.rule.always:
            kept.append(best)
        elif any(each.rule.code in best.rule.explains for each in kept):
            kept = [_with_reason(each, best) if each.rule.code in best.rule.explains else each for each in kept]
        elif _still_worth(case, likely, best):
            kept.append(best)
            likely = likely + best.likely
    return kept


def _still_worth(case: Case, likely: Removal, found: Found) -> bool:
    """Return whether a cause could gain ``min_gain`` beyond those before it, and should gain most of that.

    Both are parts of the step that is left without those before it: it is what that step would show.
    """
    least = case.limits.min_gain * (1.0 - case.expected(likely))
    most = case.gain(likely + (found.chained or Removal())) - case.gain(likely)
    if not case.has_gpu:  # one chain: nothing hides behind anything, and bounds may add up to more than a step
        most = found.gain or 0.0
    return most >= max(least, LEAST) and (found.estimate or 0.0) >= EXPECTED * least


def _with_reason(found: Found, reason: Found) -> Found:
    """Return a cause with one that accounts for a part of it as its evidence, and with that one's advice on code."""
    cause, why = found.cause, Evidence(f"partly: {reason.cause.title}", reason.cause.share, "share of step")
    advice = tuple(remedy for remedy in reason.cause.remedies if remedy.code and remedy not in cause.remedies)
    return replace(found, cause=replace(cause, evidence=(*cause.evidence, why), remedies=(*cause.remedies, *advice)))


def _rank(found: Found) -> tuple[bool, float, str]:
    """Return the place in the order: what costs no time, or hardly any and is told whatever it costs, comes last."""
    return (
        found.estimate is None or (found.rule.always and found.estimate < LITTLE),
        -(found.estimate or 0.0),
        found.rule.code,
    )


def _estimate(case: Case, likely: Removal, found: Found) -> float | None:
    """Return what removing a cause is expected to bring once `likely` is gone; never more than its bound."""
    if found.chained is None:
        return found.gain if found.cause.estimate is None else found.cause.estimate
    brings = case.expected(likely + found.likely) - case.expected(likely)
    return max(0.0, min(brings, found.gain or 0.0))
