"""The rules and their limits as the tables of docs/diagnosis.md."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from tracelock.diagnosis import rules
from tracelock.diagnosis.rule import Rule, all_rules
from tracelock.diagnosis.thresholds import limits


def rules_as_markdown() -> str:
    """Return a section for each rule: what it is, needs, when it speaks, what it advises."""
    return "\n".join(line for rule in all_rules() for line in _section(rule))


def _section(rule: Rule) -> Iterator[str]:
    yield f"### `{rule.code}`"
    yield ""
    yield what_it_is(rule)
    yield ""
    yield f"- **needs** {rule.needs}"
    yield f"- **speaks when** {rule.speaks}"
    yield f"- **advises** {rule.remedies}"
    if rule.explains:
        codes = ", ".join(f"`{code}`" for code in rule.explains)
        yield f"- **explains** {codes}: not named beside it where it accounts for most of it"
    yield ""


def what_it_is(rule: Rule) -> str:
    """Return the sentence that opens the rule's file."""
    module = sys.modules[f"{rules.__name__}.{rule.code.replace('-', '_')}"]
    return (module.__doc__ or "").strip().splitlines()[0]


def limits_as_markdown() -> str:
    """Return the table of all limits with their reasons, and which rules use them."""
    users = {limit.name: [rule.code for rule in all_rules() if limit.name in rule.thresholds] for limit in limits()}
    lines = ["| threshold | default | unit | why | used by |", "| --- | ---: | --- | --- | --- |"]
    for limit in limits():
        rows = ", ".join(f"`{code}`" for code in users[limit.name]) or "all"
        what = limit.metadata
        lines.append(f"| `{limit.name}` | {limit.default:g} | {what['unit']} | {what['reason']} | {rows} |")
    return "\n".join(lines) + "\n"
