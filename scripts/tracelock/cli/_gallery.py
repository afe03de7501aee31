"""The gallery of verdicts: what tracelock says of simulated jobs with one known fault each, with a picture of the step.

It is made anew whenever the site is, so that it shows what this version says.
"""

from __future__ import annotations

import itertools
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tracelock.diagnosis import Diagnosed
from tracelock.faults.draw import Drawn, draw_control, draw_fault
from tracelock.faults.families import FAMILIES
from tracelock.faults.grade import examine
from tracelock.report import style
from tracelock.report.trace.figures import breakdown
from tracelock.study.overview import settings_text

SEED = 3
_COLORS = {
    "kernel": style.BLUE, "memcpy": style.PURPLE, "memset": style.MUTED, "communication": style.VERMILION,
    "runtime": style.YELLOW, "dataloader": style.ORANGE, "cpu_op": style.SKY, "other": style.GREY,
}  # fmt: skip
_INTRODUCTION = """\
# Gallery of verdicts

Each job below is simulated and has one fault, whose true cost is known because the same job was simulated without it.
What stands beside it is what tracelock says of its trace, which it is given without a hint. How often it is right over
hundreds of such jobs: [measurements.md](measurements.md); how it decides: [diagnosis.md](diagnosis.md).
"""


def gallery(most: int | None = None, seed: int = SEED) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of the page ``gallery.md``, and of its pictures ``gallery/*.svg``; at most `most` jobs."""
    parts = [_INTRODUCTION]
    for drawn in itertools.islice(_cases(seed), most):
        name = re.sub(r"[^a-z]+", "-", drawn.name).strip("-")
        with tempfile.TemporaryDirectory(prefix="tracelock-gallery-") as folder:
            found, _ = examine(drawn, Path(folder))
        picture = breakdown(found, 700)
        if picture is not None:
            yield f"gallery/{name}.svg", _standalone(str(picture))
        parts.append(_entry(drawn, found, name if picture is not None else None))
    yield "gallery.md", "\n".join(parts)


def _cases(seed: int) -> Iterator[Drawn]:
    """Yield one case of each cause, and a healthy one."""
    seen: set[str] = set()
    for family in FAMILIES:
        if family.code not in seen:
            seen.add(family.code)
            yield draw_fault(family, seed)
    yield draw_control(seed)


def _entry(drawn: Drawn, found: Diagnosed, picture: str | None) -> str:
    first = found.findings[0]
    costs = "costs nothing" if not drawn.family else f"truly costs {100 * drawn.cost:.0f} % of the step"
    lines = [f"## {drawn.name[0].upper()}{drawn.name[1:]}", "", f"> {_escaped(found.verdict)}", ""]
    if picture:
        lines += [f"![Where a step of this job goes](gallery/{picture}.svg)", ""]
    lines += [f"`{first.code}`, confidence {first.confidence}; what is wrong {costs}.", ""]
    lines += [f"- {_escaped(fact.text)}" for fact in first.evidence[:4]]
    changes = [settings_text(remedy.settings) or remedy.code for remedy in first.remedies[:2]]
    if changes:
        lines += ["", "Remedy: " + "; or: ".join(change if "`" in change else _escaped(change) for change in changes)]
    return "\n".join([*lines, ""])


def _standalone(svg: str) -> str:
    """Return a figure of a page as a file of its own: with its colours, hatching and letters."""
    rules = "".join(f".p-{part}{{fill:{color}}}" for part, color in _COLORS.items())
    letters = f"text{{font:13px sans-serif;fill:{style.INK}}}.name{{font-weight:600}}.hatch{{fill:url(#hatch)}}"
    lines = '<path d="M0 6L6 0" stroke="#1f2329" stroke-width="1"/>'
    head = (
        f'<style>{rules}{letters}</style><defs><pattern id="hatch" width="6" height="6" '
        f'patternUnits="userSpaceOnUse">{lines}</pattern></defs><rect width="100%" height="100%" fill="{style.PAPER}"/>'
    )
    opened, _, rest = svg.partition(">")
    return f'{opened} xmlns="http://www.w3.org/2000/svg">{head}{rest}'


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", text)
