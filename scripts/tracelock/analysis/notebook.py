"""How an analysis shows itself in a notebook: a small piece of HTML without scripts, in the notebook's own colours.

Every text of a trace is escaped. A figure that is not known is a dash.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from tracelock.analysis.parts import STEP

if TYPE_CHECKING:
    from tracelock.analysis.model import Analysis

UNKNOWN = "–"
_TOP = 5
_TIMES = ((1e6, "s"), (1e3, "ms"), (1.0, "µs"))
_LONGEST = 80


def analysis_html(found: Analysis) -> str:
    """Return the verdict where there is one, where a step goes, and the operators and kernels that take most time."""
    facts = [found.trace.file, f"{found.step.count} steps of {time_text(found.step.mean_us)}"]
    facts += [f"{len(found.gpus)} GPUs"] if found.gpus else []
    parts = [paragraph(str(getattr(found, "verdict", "")), strong=True), paragraph(" · ".join(facts))]
    if found.step.breakdown_us is not None and found.step.mean_us:
        parts.append(_breakdown(found))
    own = [(each.name, f"{each.calls:,}", time_text(each.self_cpu_us)) for each in found.operators]
    kernels = [(each.name, f"{each.calls:,}", time_text(each.total_us)) for each in found.kernels]
    for heading, rows in (("operator", own), ("kernel", kernels)):
        if rows:
            parts.append(table((heading, "calls", "own time" if heading == "operator" else "time"), rows[:_TOP]))
    return "".join(parts)


def _breakdown(found: Analysis) -> str:
    values = [(part.label, getattr(found.step.breakdown_us, part.key)) for part in STEP]
    shown = sorted(((label, value) for label, value in values if value > 0), key=lambda one: -one[1])
    whole = found.step.mean_us or 1.0
    return table(
        ("where a step goes", "time", "share"),
        [(label, time_text(value), f"{100 * value / whole:.1f} %") for label, value in shown],
        [value / whole for _, value in shown],
    )


def paragraph(text: str, strong: bool = False) -> str:
    """Return a text as a paragraph, nothing where it is empty."""
    body = f"<strong>{escape(text)}</strong>" if strong else escape(text)
    return f"<p>{body}</p>" if text else ""


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], bars: Sequence[float] = ()) -> str:
    """Return a table: names left, figures right; with a bar at the end of each row for `bars` (0..1)."""
    head = "".join(f"<th{_side(place)}>{escape(text)}</th>" for place, text in enumerate(headings))
    body = []
    for number, row in enumerate(rows):
        cells = "".join(f"<td{_side(place)}>{escape(_clipped(text))}</td>" for place, text in enumerate(row))
        body.append(f"<tr>{cells}{_bar(bars[number]) if bars else ''}</tr>")
    return f"<table><thead><tr>{head}{'<th></th>' if bars else ''}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def time_text(value_us: float | None) -> str:
    """Return microseconds with a unit that suits them."""
    if value_us is None:
        return UNKNOWN
    scale, unit = next((each for each in _TIMES if abs(value_us) >= each[0]), _TIMES[-1])
    return f"{value_us / scale:,.3g} {unit}" if abs(value_us / scale) < 999.5 else f"{value_us / scale:,.0f} {unit}"


def _side(place: int) -> str:
    return f' style="text-align:{"right" if place else "left"}"'


def _bar(share: float) -> str:
    wide = 120 * min(max(share, 0.0), 1.0)
    style = f"width:{wide:.0f}px;height:0.8em;background:currentColor;opacity:0.6"
    return f'<td style="text-align:left"><div style="{style}"></div></td>'


def _clipped(text: str) -> str:
    """Return a name whose middle is left out where it is very long: its end often tells most."""
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[:half]}…{text[-half:]}"
