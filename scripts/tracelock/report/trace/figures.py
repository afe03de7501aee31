"""The still figures of a page of traces, as SVG whose colours are those of its style sheet.

They are drawn without matplotlib, so that the page needs no more than the analysis does.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from tracelock.analysis.model import Breakdown, Step
from tracelock.analysis.parts import STEP_LABELS
from tracelock.analysis.ranks import Ranks
from tracelock.diagnosis import Diagnosed
from tracelock.report.trace.numbers import share, time
from tracelock.report.trace.words import clipped

HATCHED = ("dataloader", "communication")  # told apart without colours, too
MOST_STEPS = 60


def breakdown(found: Diagnosed, width: int) -> Markup | None:
    """Return where a step goes: one bar whose parts are labelled; None where no step is complete."""
    parts, whole = found.step.breakdown_us, found.step.mean_us
    if parts is None or not whole:
        return None
    shown = [(name, getattr(parts, name)) for name in STEP_LABELS if getattr(parts, name) > 0]
    marks: list[str] = []
    x = 0.0
    for name, value in shown:
        wide = width * value / whole
        marks += _rect(name, (x, 8, wide, 34), f"{STEP_LABELS[name]}: {time(value)}, {share(value / whole)}")
        x += wide
    legend, height = _legend(shown, whole, width)
    told = ", ".join(f"{STEP_LABELS[name]} {share(value / whole)}" for name, value in shown)
    return _svg(marks + legend, width, 52 + height, f"Where a step of {time(whole)} goes: {told}")


def _legend(shown: Sequence[tuple[str, float]], whole: float, width: int) -> tuple[list[str], int]:
    """Return the parts in words below the bar, largest first, and how high they stand."""
    columns = max(1, width // 240)
    marks = []
    for place, (name, value) in enumerate(sorted(shown, key=lambda part: -part[1])):
        x, y = (place % columns) * width / columns, 56 + 20 * (place // columns)
        marks += _rect(name, (x, y, 14, 11), "")
        told = f'<tspan class="name">{STEP_LABELS[name]}</tspan> {escape(f"{time(value)}, {share(value / whole)}")}'
        marks.append(f'<text x="{x + 20:.1f}" y="{y + 10}">{told}</text>')
    return marks, 20 * -(-len(shown) // columns) + 6


def steps(found: Diagnosed, width: int) -> Markup | None:
    """Return the steps as bars below each other, the longest ones where there are many; None for one step."""
    every = found.steps
    if len(every) < 2:
        return None
    chosen = every
    if len(every) > MOST_STEPS:
        longest = {id(each) for each in sorted(every, key=lambda each: -each.duration_us)[:MOST_STEPS]}
        chosen = tuple(each for each in every if id(each) in longest)
    scale = (width - 230) / max(each.duration_us for each in chosen)
    marks: list[str] = []
    for place, each in enumerate(chosen):
        marks += _step(each, 18 * place, scale if scale > 0 else 0)
    return _svg(marks, width, 18 * len(chosen) + 4, f"The duration of {len(chosen)} of {len(every)} steps, by parts")


def _step(each: Step, y: float, scale: float) -> list[str]:
    name = each.name.replace("ProfilerStep", "") + ("" if each.complete else " cut off")
    marks = [_text(0, y + 12, clipped(name)[:16], "muted")]
    x = 96.0
    for part in STEP_LABELS:
        wide = scale * getattr(each.breakdown_us, part)
        marks += _rect(part, (x, y + 2, wide, 13), f"{STEP_LABELS[part]}: {time(getattr(each.breakdown_us, part))}")
        x += wide
    return [*marks, _text(x + 6, y + 12, time(each.duration_us))]


def waits(ranks: Ranks, width: int) -> Markup:
    """Return for each rank how long it waits for the others, and how long it makes them wait."""
    most = max([each.waited_us for each in ranks.ranks] + [each.caused_us for each in ranks.ranks] + [1e-9])
    scale = (width - 190) / most
    marks = [
        _text(96, 10, "waits for others", "muted"),
        _text(220, 10, "hatched: makes others wait", "muted"),
    ]
    for place, each in enumerate(ranks.ranks):
        y = 18 + 34 * place
        marks.append(_text(0, y + 16, f"rank {each.rank}", "name"))
        marks += _rect("cpu_op", (96, y, scale * each.waited_us, 13), f"rank {each.rank} waits {time(each.waited_us)}")
        marks.append(_text(102 + scale * each.waited_us, y + 11, time(each.waited_us)))
        marks += _rect(
            "communication", (96, y + 14, scale * each.caused_us, 13), f"others wait {time(each.caused_us)} for it"
        )
        marks.append(_text(102 + scale * each.caused_us, y + 25, time(each.caused_us)))
    return _svg(marks, width, 24 + 34 * len(ranks.ranks), "Waiting in collectives by rank")


def parts_of(parts: Breakdown) -> list[tuple[str, float]]:
    """Return the exclusive parts of a step with their words, microseconds."""
    return [(word, getattr(parts, name)) for name, word in STEP_LABELS.items()]


def _rect(part: str, box: tuple[float, float, float, float], title: str) -> list[str]:
    x, y, width, height = box
    if width <= 0:
        return []
    where = f'x="{x:.2f}" y="{y:g}" width="{max(0.3, width - 0.6):.2f}" height="{height:g}"'
    named = f"<title>{escape(title)}</title>" if title else ""
    marks = [f'<rect class="p-{part}" {where}>{named}</rect>']
    return [*marks, f'<rect class="hatch" {where}>{named}</rect>'] if part in HATCHED else marks


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:g}">{escape(text)}</text>'


def _svg(marks: Sequence[str], width: int, height: float, told: str) -> Markup:
    head = f'<svg role="img" viewBox="0 0 {width} {height:g}" aria-label="{escape(told)}">'
    return Markup(head + "".join(marks) + "</svg>")  # noqa: S704  every text in it is escaped above
