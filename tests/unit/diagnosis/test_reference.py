"""docs/diagnosis.md: made from the rules, and complete."""

from __future__ import annotations

from pathlib import Path

from tracelock.diagnosis.reference import limits_as_markdown, rules_as_markdown, what_it_is
from tracelock.diagnosis.rule import all_rules


def test_the_page_holds_what_the_code_says(root: Path) -> None:
    page = (root / "docs" / "diagnosis.md").read_text(encoding="utf-8")
    assert rules_as_markdown() in page, "make docs"
    assert limits_as_markdown() in page, "make docs"


def test_every_rule_says_what_it_needs_when_it_speaks_and_what_it_advises() -> None:
    for rule in all_rules():
        assert what_it_is(rule).endswith("."), rule.code
        for text in (rule.needs, rule.speaks, rule.remedies):
            assert len(text) > 10, rule.code
        for name in rule.thresholds:
            assert f"`{name}`" in rule.speaks or name == "critical_gain", (rule.code, name)
