"""Which nodes of a cluster the two sides of a comparison were measured on."""

from __future__ import annotations

from collections.abc import Sequence

from tracelock.study.comparison import ComparisonRow
from tracelock.study.gather import Measured


def across_nodes(measured: Sequence[Measured], rows: Sequence[ComparisonRow]) -> dict[str, str]:
    """Return, by comparison, that its sides were measured on different nodes."""
    nodes: dict[tuple[str, str], set[str]] = {}
    for one in measured:
        if node := one.run.node:
            nodes.setdefault((one.run.environment, one.run.variant), set()).add(node)
    return {
        f"comparisons/{row.environment}/{row.variant}/nodes": _apart(
            nodes[row.key], nodes[row.reference_environment, row.reference_variant]
        )
        for row in rows
        if row.key in nodes
        and (row.reference_environment, row.reference_variant) in nodes
        and nodes[row.key] != nodes[row.reference_environment, row.reference_variant]
    }


def _apart(one: set[str], other: set[str]) -> str:
    return f"not within one node ({_few(one)} against {_few(other)}): what these differ in is part of the ratio"


def _few(nodes: set[str]) -> str:
    shown = sorted(nodes)
    return ", ".join(shown[:3]) + (f" and {len(shown) - 3} more" if len(shown) > 3 else "")
