"""From an analysis to its diagnosis: every rule asked, symptoms of other causes left out, the main cause first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from tracelock.analysis.model import Analysis
from tracelock.analysis.ranks import Ranks
from tracelock.diagnosis.case import Case, Removal, Samples
from tracelock.diagnosis.healthy import no_bottleneck
from tracelock.diagnosis.measures import confidence, severity
from tracelock.diagnosis.model import Diagnosed, Finding
from tracelock.diagnosis.rule import Cause, Rule, all_rules
from tracelock.diagnosis.thresholds import Thresholds


def diagnose(
    analysis: Analysis,
    settings: Mapping[str, Any] | None = None,
    run: Mapping[str, Any] | None = None,
    samples: Samples | None = None,
    thresholds: Thresholds | None = None,
    ranks: Ranks | None = None,
) -> Diagnosed:
    """Return `analysis` with its findings, the main cause first.

    Parameters
    ----------
    settings
        Settings in force; those of `run` where they are not given. Remedies depend on them.
    run
        The document ``tracelock/run/1`` of the run that wrote the trace, where there is one.
    samples
        The columns of its ``samples.csv``, see `tracelock.diagnosis.samples`.
    thresholds
        Limits of the rules, the documented defaults where None.
    ranks
        This trace beside those of the other ranks of its job.
    """
    in_force = dict((run or {}).get("settings", {}) if settings is None else settings)
    case = Case(analysis, in_force, run, samples, thresholds or Thresholds(), ranks)
    findings = [each.finding(case) for each in main_causes(case)] or [no_bottleneck(case)]
    kept = {part.name: getattr(analysis, part.name) for part in fields(Analysis)}
    return Diagnosed(**kept, findings=tuple(findings), verdict=_verdict(findings), settings=in_force)


@dataclass(frozen=True)
class Found:
    """A cause with its rule and its bound."""

    rule: Rule
    cause: Cause
    gain: float | None

    def finding(self, case: Case) -> Finding:
        """Return it as the document has it."""
        cause = self.cause
        return Finding(
            code=self.rule.code,
            title=cause.title,
            severity=cause.severity or severity(case, self.gain),
            share_of_step=cause.share,
            gain_at_most=self.gain,
            confidence=cause.confidence or confidence(case),
            evidence=cause.evidence,
            remedies=cause.remedies,
        )


def main_causes(case: Case) -> list[Found]:
    """Return the causes of a case, those that could gain most first, without what others of them explain."""
    found = [Found(rule, cause, _gain(case, cause)) for rule in all_rules() if (cause := rule.examine(case))]
    found.sort(key=lambda each: (-1.0 if each.gain is None else -each.gain - 1.0, each.rule.code))
    explained = {code for each in found for code in each.rule.explains}
    return _still_worth(case, [each for each in found if each.rule.code not in explained])


def _gain(case: Case, cause: Cause) -> float | None:
    if cause.gain is not None or cause.removal is None:
        return cause.gain
    return case.gain(cause.removal)


def _still_worth(case: Case, found: Sequence[Found]) -> list[Found]:
    """Return those of `found` that could still gain something once all before them are removed.

    What a cause can gain beyond the causes before it is the bound of all together less the bound without it. Where that
    is below ``min_gain`` the cause is a symptom: a wait that costs only because the loader holds the host up.
    """
    kept: list[Found] = []
    removed = Removal()
    for each in found:
        if each.cause.removal is None or each.cause.gain is not None or each.rule.always:
            kept.append(each)
            continue
        together = removed + each.cause.removal
        if not _any(removed) or case.gain(together) - case.gain(removed) >= case.limits.min_gain:
            kept.append(each)
            removed = together
    return kept


def _any(removal: Removal) -> bool:
    """Return whether anything is removed at all."""
    return removal != Removal()


def _verdict(findings: Sequence[Finding]) -> str:
    """Return one sentence for a person."""
    main = findings[0]
    gain = "" if not main.gain_at_most else f"; removing it saves at most {main.gain_at_most:.0%} of the step"
    return f"{main.title}{gain}."
