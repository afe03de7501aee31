"""From an analysis to its diagnosis: every rule asked, symptoms of other causes left out, the main cause first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from tracelock.analysis.model import Analysis
from tracelock.analysis.ranks import Ranks
from tracelock.diagnosis.case import Case, Samples
from tracelock.diagnosis.healthy import no_bottleneck
from tracelock.diagnosis.model import Diagnosed, Finding
from tracelock.diagnosis.order import main_causes
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


def _verdict(findings: Sequence[Finding]) -> str:
    """Return one sentence for a person."""
    main = findings[0]
    gain = "" if not main.gain_at_most else f"; removing it saves at most {main.gain_at_most:.0%} of the step"
    return f"{main.title}{gain}."
