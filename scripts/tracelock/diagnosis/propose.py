"""Which settings to try next: the remedies of a diagnosis as changes of the settings in force."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tracelock.diagnosis.model import Diagnosed
from tracelock.runner.settings import check


@dataclass(frozen=True)
class Proposal:
    """A change of settings that is worth a measurement."""

    settings: dict[str, Any]  # what changes, and to what
    finding: str  # the code of the finding that it should remove
    expect: str  # what should happen to which figure


def propose(
    diagnosed: Diagnosed, settings: Mapping[str, Any], tried: Iterable[Mapping[str, Any]] = ()
) -> list[Proposal]:
    """Return the changes of `settings` that the remedies of `diagnosed` name, those of the main cause first.

    Parameters
    ----------
    settings
        The settings in force, all resolved.
    tried
        Resolved settings that have been measured; what leads to one of them is not proposed again.

    Notes
    -----
    Remedies that need code propose nothing. A change that alters nothing, leads where another one leads, or makes
    settings that exclude each other is left out.
    """
    seen = [dict(settings), *(dict(each) for each in tried)]
    proposals = []
    for proposal in _remedies(diagnosed):
        changed = {name: value for name, value in proposal.settings.items() if settings.get(name) != value}
        resolved = {**settings, **changed}
        if resolved not in seen and not check(resolved, own=None):
            seen.append(resolved)
            proposals.append(Proposal(changed, proposal.finding, proposal.expect))
    return proposals


def _remedies(diagnosed: Diagnosed) -> Iterator[Proposal]:
    for finding in diagnosed.findings:
        for remedy in finding.remedies:
            if remedy.settings:
                yield Proposal(dict(remedy.settings), finding.code, remedy.expect)
