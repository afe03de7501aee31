"""What a study file says of its traces. The driver reads this, too: nothing is needed beside the standard library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

GB = 10**9


@dataclass(frozen=True)
class Policy:
    """What a study file says. `limit` is in bytes."""

    keep: str = "all"
    limit: float | None = None

    @classmethod
    def of(cls, plan: Mapping[str, Any]) -> Policy:
        """Return the policy of the document ``tracelock/plan/1``."""
        said = plan.get("traces") or {}
        most = said.get("max_total_gb")
        return cls(said.get("keep", "all"), None if most is None else most * GB)

    @property
    def why(self) -> str:
        """The words of the study file that let a trace go."""
        return f"keep_traces: {self.keep}"

    @property
    def full(self) -> str:
        """The words for a trace that had no room."""
        return f"max_total_gb: {(self.limit or 0) / GB:g}"


def policy_text(keep: str, max_total_gb: float | None) -> str:
    """Return what a policy means, for the plan of a study."""
    words = {
        "all": "all are kept",
        "best": "those of the baseline and of the fastest variant are kept, one each",
        "failed": "those of runs that were disturbed, cut or not analysed are kept",
        "none": "none is kept once it was analysed",
    }[keep]
    return words if max_total_gb is None else f"{words}; at most {max_total_gb:g} GB"
