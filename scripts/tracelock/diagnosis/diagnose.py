"""From an analysis to its diagnosis: every rule asked, symptoms of other causes left out, the main cause first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from tracelock.analysis.model import Analysis
from tracelock.diagnosis.case import Case, Samples
from tracelock.diagnosis.healthy import no_bottleneck
from tracelock.diagnosis.model import Diagnosed, Finding
from tracelock.diagnosis.rule import Rule, all_rules
from tracelock.diagnosis.thresholds import Thresholds


def diagnose(
    analysis: Analysis,
    settings: Mapping[str, Any] | None = None,
    run: Mapping[str, Any] | None = None,
    samples: Samples | None = None,
    thresholds: Thresholds | None = None,
) -> Diagnosed:
    """Return `analysis` with its findings, the main cause first.

    Parameters
    ----------
    settings
        Settings in force; those of `run` where they are not given. Remedies depend on them.
    run
        The document ``tracelock/run/1`` of the run that wrote the trace, where there is one.
    samples
        The columns of its ``samples.csv``.
    thresholds
        Limits of the rules, the documented defaults where None.
    """
    in_force = dict((run or {}).get("settings", {}) if settings is None else settings)
    case = Case(analysis, in_force, run, samples, thresholds or Thresholds())
    rules = all_rules()
    found = [finding for rule in rules if (finding := rule.examine(case))]
    findings = _ordered(_main_causes(found, rules)) or [no_bottleneck(case)]
    kept = {part.name: getattr(analysis, part.name) for part in fields(Analysis)}
    return Diagnosed(**kept, findings=tuple(findings), verdict=_verdict(findings), settings=in_force)


def _gain(finding: Finding) -> float:
    return -1.0 if finding.gain_at_most is None else finding.gain_at_most


def _ordered(found: Sequence[Finding]) -> list[Finding]:
    """Return `found` by what removing each can gain at most; causes whose gain is no time come last."""
    return sorted(found, key=lambda finding: (-_gain(finding), -(finding.share_of_step or 0.0), finding.code))


def _main_causes(found: Sequence[Finding], rules: Sequence[Rule]) -> list[Finding]:
    """Return `found` without those that another finding of `found` explains."""
    explains = {rule.code: set(rule.explains) for rule in rules}
    present = {finding.code for finding in found}
    explained = {code for finding in found for code in explains.get(finding.code, ()) if code in present}
    return [finding for finding in found if finding.code not in explained]


def _verdict(findings: Sequence[Finding]) -> str:
    """Return one sentence for a person."""
    main = findings[0]
    gain = "" if not main.gain_at_most else f"; removing it saves at most {main.gain_at_most:.0%} of the step"
    return f"{main.title}{gain}."
