"""From an analysis to its diagnosis: every rule asked, symptoms of other causes left out, the main cause first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from tracelock.analysis.model import Analysis
from tracelock.analysis.ranks import Ranks
from tracelock.diagnosis.case import Case, Samples
from tracelock.diagnosis.examined import not_examined, ruled_out
from tracelock.diagnosis.healthy import no_bottleneck
from tracelock.diagnosis.model import Diagnosed, Finding
from tracelock.diagnosis.order import main_causes
from tracelock.diagnosis.thresholds import Thresholds

UNCERTAIN = 0.03  # of the step: what eight recorded steps differ by from a long run


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
    causes = main_causes(case)
    findings = [each.finding(case, [other for other in causes if other is not each]) for each in causes]
    findings = findings or [no_bottleneck(case)]
    kept = {part.name: getattr(analysis, part.name) for part in fields(Analysis)}
    return Diagnosed(
        **kept,
        findings=tuple(findings),
        verdict=_verdict(findings),
        settings=in_force,
        ruled_out=ruled_out(case, frozenset(each.code for each in findings)),
        not_examined=not_examined(case),
    )


def _verdict(findings: Sequence[Finding]) -> str:
    """Return one sentence for a person; two for causes that lie within each other's uncertainty."""
    leading = [each for each in findings if _leads(each, findings[0])]
    if len(leading) > 1:
        return f"Causes that cost about the same lead: {'; '.join(map(_told, leading))}."
    return f"{_told(findings[0])}."


def _leads(finding: Finding, main: Finding) -> bool:
    """Return whether a finding is the main one, or cannot be told from it by what its removal should bring."""
    if finding.gain_estimate is None or main.gain_estimate is None:
        return finding is main
    return finding.gain_estimate >= main.gain_estimate - UNCERTAIN


def _told(finding: Finding) -> str:
    gain = "" if not finding.gain_at_most else f"; removing it saves at most {finding.gain_at_most:.0%} of the step"
    return f"{finding.title}{gain}"
