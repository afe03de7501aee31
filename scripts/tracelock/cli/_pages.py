"""The pages of docs/ that are made from the code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tracelock.diagnosis.reference import limits_as_markdown, rules_as_markdown
from tracelock.runner.protocol import SECTIONS
from tracelock.runner.settings import STANDARD, as_markdown
from tracelock.runner.workloads.tables import IMAGES, MLP, TRANSFORMER
from tracelock.study.model import Remedies, Study
from tracelock.study.place import ROOT
from tracelock.study.shape import SCHEMA_FILE
from tracelock.study.tables import document_tables

_DEFAULTS = {**{name: section() for name, section in SECTIONS.items()}, "remedies": Remedies()}
_SETTINGS = {"standard": STANDARD, "images": IMAGES, "mlp": MLP, "transformer": TRANSFORMER}

_INTRODUCTION = """\
# Study files

This page is made from `workflow/schemas/study.schema.json` (`make docs`).

A study file says what is measured and what is varied. `tracelock study check FILE` says everything that is wrong with
one, each with its line, what is allowed and the nearest valid spelling; `tracelock study plan FILE` shows what it would
measure. Settings (under `workload.settings`, `baseline`, `factors`, `variants`) are the standard ones and those of the
workload: [workloads.md](workloads.md).

**Variants.** The grid is every combination of `factors`; `exclude` takes combinations out; `variants` adds further
ones, each a change of the baseline. Settings without effect beside the others (workers kept alive where there are none)
do not make a second variant. **Order.** Every variant is measured once before any is measured twice, in an order
shuffled by `seed`. **Thresholds** are those of [diagnosis.md](diagnosis.md).

**Traces** take most of the room. With `keep_traces: failed` or `none` each goes as soon as it was analysed. With
`best`, or over `max_total_gb`, they go while the study runs, too: never more than about a hundred wait for the
choice, and the sum stays below the limit but for traces that were not analysed yet. Over the limit stay, in this
order: those of runs without an analysis, the best, runs that were disturbed or cut, one of each variant. `run.json`
of a run whose trace went says so (`profiled.freed`, `unknown`), `traces.json` lists all, summary and report count
them. What was found in a trace stays: a later analysis diagnoses the kept figures anew.
"""


def pages() -> Iterator[tuple[Path, str]]:
    """Yield (file, text) of every page as it should be."""
    docs = ROOT / "docs"
    yield docs / "studies.md", study_page()
    yield docs / "tables.md", document_tables()
    yield docs / "diagnosis.md", with_rules((docs / "diagnosis.md").read_text(encoding="utf-8"))
    yield docs / "workloads.md", with_settings((docs / "workloads.md").read_text(encoding="utf-8"))


def study_page() -> str:
    """Return the reference of study files."""
    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    rows = list(_rows(schema, "", Study))
    table = ["| key | value | default | meaning |", "| --- | --- | --- | --- |", *rows]
    return _INTRODUCTION + "\n## Keys\n\n" + "\n".join(table) + "\n"


def with_rules(text: str) -> str:
    """Return a page whose parts between ``<!-- rules -->`` or ``<!-- thresholds -->`` and ``<!-- end -->`` are made."""
    for name, made in (("rules", rules_as_markdown()), ("thresholds", limits_as_markdown())):
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text = pattern.sub(lambda found, made=made: f"{found[1]}\n{made}\n{found[2]}", text)  # type: ignore[misc]
    return text


def with_settings(text: str) -> str:
    """Return a page whose tables below ``<!-- settings: name -->`` are those of the code."""
    for name, settings in _SETTINGS.items():
        pattern = re.compile(rf"(<!-- settings: {name} -->\n)(\|[^\n]*\n)+")
        made = as_markdown(settings)
        text = pattern.sub(lambda found, made=made: found[1] + made, text)  # type: ignore[misc]
    return text


def _rows(schema: dict[str, Any], prefix: str, section: Any) -> Iterator[str]:
    required = set(schema.get("required", ()))
    for key, value in schema["properties"].items():
        name = f"{prefix}{key}"
        if value.get("type") == "object" and "properties" in value:
            yield from _rows(value, f"{name}.", _DEFAULTS.get(key))
            continue
        default = "required" if key in required else _default(section, key)
        yield f"| `{name}` | {_kind(value)} | {default} | {value.get('description', '')} |"


def _default(section: Any, key: str) -> str:
    value = getattr(section, key, None)
    return f"`{json.dumps(value)}`" if isinstance(value, bool | int | float | str) and value != "" else ""


def _kind(value: dict[str, Any]) -> str:
    if "enum" in value:
        return ", ".join(f"`{item}`" for item in value["enum"])
    words = {
        "object": "mapping",
        "array": "list",
        "integer": "whole number",
        "boolean": "true or false",
        "string": "text",
    }
    bounds = {"minimum": "≥", "maximum": "≤", "exclusiveMinimum": ">"}
    limits = [f"{sign} {value[name]}" for name, sign in bounds.items() if name in value]
    return " ".join([words.get(value["type"], value["type"]), ", ".join(limits)]).strip()
