"""Traces become one page: the answer and still figures as HTML, everything that can be asked as data beside it."""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

import tracelock
from tracelock.analysis.at_peak import peaks
from tracelock.analysis.modules import modules
from tracelock.analysis.owners import allocated_by_row
from tracelock.analysis.parts import STEP_LABELS
from tracelock.analysis.prepared import Prepared
from tracelock.analysis.ranks import Ranks
from tracelock.diagnosis import Diagnosed, Finding
from tracelock.report.trace import figures, numbers, pack, tables
from tracelock.report.trace.flames import flames
from tracelock.report.trace.memory import NONE, memories
from tracelock.report.trace.places import evidence_places, place_of
from tracelock.report.trace.summary import answer, doubts, facts, notes, remedy_text
from tracelock.report.trace.timeline import MOST, Drawn, draw
from tracelock.report.trace.words import clipped

_REPORT = Path(__file__).parent.parent
_SCRIPTS = ("core", "tables", "flame", "timeline-data", "timeline-draw", "timeline", "memory", "page")
_WIDE, _NARROW = 830, 360
_UNWRITABLE = re.compile(r"[\x00\ud800-\udfff]")  # no page can hold them; the data beside it carry them escaped


@dataclass(frozen=True)
class File:
    """One trace of a page, as it is shown without scripts, and its data as letters."""

    found: Diagnosed
    facts: str
    doubts: Sequence[str]
    answer: Sequence[str]
    findings: Sequence[dict[str, Any]]
    notes: Sequence[str]
    figures: dict[str, Markup | None]
    commands: Sequence[str]
    typical: int | None
    slowest: int | None
    about: str
    rows: str


def file_of(known: Prepared, found: Diagnosed, share: float = 1.0) -> File:
    """Return what a page shows of one trace.

    Parameters
    ----------
    share
        The part of the page's room that this trace may fill: one over the number of ranks.
    """
    drawn = draw(known, max(2000, int(MOST * share)))
    about = _about(known, found, drawn)
    return File(
        found=found,
        facts=" · ".join(facts(found)),
        doubts=list(doubts(found)),
        answer=answer(found),
        findings=[_finding(each, known, drawn) for each in found.findings],
        notes=list(notes(found)),
        figures={
            "breakdown": figures.breakdown(found, _WIDE),
            "breakdown_narrow": figures.breakdown(found, _NARROW),
            "steps": figures.steps(found, _WIDE),
            "steps_narrow": figures.steps(found, _NARROW),
        },
        commands=_commands(found, drawn),
        typical=drawn.about["typical"],
        slowest=drawn.about["slowest"],
        about=pack.document(about),
        rows=drawn.rows,
    )


def _about(known: Prepared, found: Diagnosed, drawn: Drawn) -> dict[str, Any]:
    allocated = allocated_by_row(known.trace, known.tree) if len(known.trace.memory) else None
    inner = modules(known, allocated)
    every = {
        "operators": tables.operator_views(found, inner),
        "kernels": tables.kernel_views(found),
        "modules": [tables.modules_table(inner)],
        "transfers": [tables.transfers(found)],
        "launches": [tables.launches(found)],
        "collectives": [tables.collectives(found)],
        "steps": [tables.steps(found, STEP_LABELS)],
        "threads": [tables.threads(found)],
        "idle": [tables.idle(found)],
    }
    return {
        "timeline": drawn.about,
        "tables": {name: [each.document() for each in views] for name, views in every.items()},
        "flames": flames(known),
        "memory": memories(found, peaks(known.trace, known.tree, known.origin)),
    }


def _finding(each: Finding, known: Prepared, drawn: Drawn) -> dict[str, Any]:
    named = evidence_places(each)
    example = None if any(named) else place_of(each, known, drawn.lanes)
    return {
        "finding": each,
        "evidence": [(fact.text, places) for fact, places in zip(each.evidence, named, strict=True)],
        "example": example,
        "remedies": [(remedy_text(remedy), remedy.expect) for remedy in each.remedies],
    }


def _commands(found: Diagnosed, drawn: Drawn) -> list[str]:
    file = shlex.quote(found.trace.file)
    commands = [f"tracelock report {file}", f"tracelock analyze {file} --json"]
    slowest = drawn.about["slowest"]
    number = drawn.about["steps"][slowest][0].removeprefix("ProfilerStep#") if slowest is not None else ""
    if number.isdigit():
        commands.append(f"tracelock analyze {file} --step {number}")
        commands.append(f"tracelock slim {file} slowest.json.gz --steps 1 --from {number}")
    return commands


def render(files: Sequence[File], ranks: Ranks | None = None, ranks_answer: str = "") -> str:
    """Return the page of one trace, or of several ranks, as HTML."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_REPORT / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"time": numbers.time, "share": numbers.share, "clip": clipped}
    css = _join(_REPORT / "templates" / name for name in ("report.css", "controls.css", "trace.css"))
    script = '"use strict";\n' + _join(_REPORT / "assets" / f"{name}.js" for name in _SCRIPTS)
    text = environment.get_template("trace.html.j2").render(
        files=files,
        ranks=ranks,
        ranks_answer=ranks_answer,
        waits=None if ranks is None else {"wide": figures.waits(ranks, _WIDE), "narrow": figures.waits(ranks, _NARROW)},
        css=Markup(css),  # noqa: S704  our own files
        script=Markup(script),  # noqa: S704
        css_hash=_hash(css),
        script_hash=_hash(script),
        no_memory=NONE,
        version=tracelock.__version__,
    )
    return _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def _join(paths: Any) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in paths)


def _hash(text: str) -> str:
    """Return the SHA-256 of an inline script or style as a Content-Security-Policy names it."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
