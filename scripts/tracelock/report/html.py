"""The report: one HTML file that needs nothing else, the answer first."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

import tracelock
from tracelock.envs.factor import EnvironmentDifference, change_rows, environment_differences
from tracelock.io import write_text
from tracelock.report import style, text
from tracelock.report.answer import answer_parts, headline
from tracelock.report.ask import script, study_data
from tracelock.report.figures import load, page_names, render
from tracelock.report.kept import is_gone, traces_text
from tracelock.report.path import BestPath, best_path
from tracelock.report.peaks import memory_source
from tracelock.study import comparison as document
from tracelock.study.comparison import Comparison
from tracelock.study.outcome import RunRow
from tracelock.study.overview import (
    SHOWN,
    Line,
    chosen,
    chosen_text,
    losses,
    noise_text,
    overview,
    remedy_text,
    settings_text,
    value_text,
)

_TEMPLATES = Path(__file__).parent / "templates"
FIRST = 4  # variants with missing runs that stand open above the answer
_STYLES = ("report.css", "controls.css", "ask.css")
_FILTERS: dict[str, Callable[..., Any]] = {
    "time": text.time,
    "size": text.size,
    "percent": text.percent,
    "ratio": text.ratio,
    "rate": text.rate,
    "time_interval": text.time_interval,
    "ratio_interval": text.ratio_interval,
    "rate_interval": text.rate_interval,
    "count": text.count,
    "mark": text.mark,
    "settings": settings_text,
    "value": value_text,
    "remedy": remedy_text,
    # A line may break after each comma and slash of an id, never inside a setting.
    "id": lambda name: Markup("<wbr>").join(re.split("(?<=[,/])", name)),
    "breakable": lambda name: Markup("_<wbr>").join(name.split("_")),
}


def write_report(folder: Path, output: Path) -> None:
    """Write the report of the results in `folder` to `output`.

    Raises
    ------
    TracelockError
        If `folder` holds no comparison.json.
    """
    comparison = document.read(folder / "comparison.json")
    differences = environment_differences(folder, [place.name for place in comparison.environments])
    write_text(output, render_report(comparison, _machines(folder, comparison), differences))


def render_report(
    comparison: Comparison,
    machines: Mapping[str, Mapping[str, Any]],
    differences: Sequence[EnvironmentDifference] = (),
) -> str:
    """Return the report as HTML.

    Parameters
    ----------
    machines
        The content of ``machine.json`` for each environment that has one.
    differences
        What differs between the environments, where there are several.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= _FILTERS
    code, code_hash = script()
    lines = overview(comparison)
    return environment.get_template("report.html.j2").render(
        comparison=comparison,
        answers=[(one, headline(comparison, one), answer_parts(comparison, one)) for one in comparison.answers],
        paths=[best_path(comparison, one) for one in comparison.answers] or [BestPath((), "", None)],
        lines=chosen(lines),
        most=SHOWN,
        first=FIRST,
        lost=losses(comparison),
        left_out=chosen_text(lines),
        runs=_runs_of(comparison, chosen(lines)),
        figures=[_figure(comparison, name) for name in page_names(comparison)],
        memory=memory_source(comparison),
        factor_columns=_factor_columns(comparison),
        label=lambda case: text.label(case, len(comparison.environments)),
        machines={name: dict(_flat(machine)) for name, machine in machines.items()},
        differences=differences,
        change_rows=change_rows,
        baseline_settings=next((case.settings for case in comparison.cases if case.baseline), {}),
        overhead=_overhead(comparison),
        traces=traces_text(comparison),
        is_gone=is_gone,
        notes=_notes(comparison),
        noise=noise_text(comparison),
        css=Markup("".join((_TEMPLATES / name).read_text(encoding="utf-8") for name in _STYLES)),  # noqa: S704  our own
        script=Markup(code),  # noqa: S704  our own
        script_hash=code_hash,
        study_data=study_data(comparison),
        unlocked_names=[place.name for place in comparison.environments if place.unlocked],
        version=tracelock.__version__,
        unknown=text.UNKNOWN,
    )


def inline_svg(svg: str, prefix: str, description: str) -> Markup:
    """Return an SVG file as an element of a page: no prologue, no namespaces, the page's colours.

    Parameters
    ----------
    prefix
        Put before the ids that the file refers to, so that several figures can share a page; other ids go.
    """
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg).replace("xlink:href", "href")
    used = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', svg))
    names = {one or other for one, other in used}
    svg = re.sub(r' id="([^"]*)"', lambda found: f' id="{prefix}{found[1]}"' if found[1] in names else "", svg)
    svg = svg.replace('href="#', f'href="#{prefix}').replace("url(#", f"url(#{prefix}")
    for color, variable in style.PAGE.items():
        svg = svg.replace(color.lower(), f"var(--{variable})")
    head = f'<svg role="img" aria-label="{Markup.escape(description)}"'
    return Markup(svg.replace("<svg", head, 1))  # noqa: S704  matplotlib escapes every text


def _figure(comparison: Comparison, name: str) -> dict[str, Any]:
    module = load(name)
    drawn = {
        kind: inline_svg(render(name, comparison, width, "svg", page=True).decode(), f"{name}-{kind}-", module.TITLE)
        for kind, width in (("wide", style.WIDE), ("narrow", style.NARROW))
    }
    return {"name": name, "title": module.TITLE, "caption": module.caption(comparison), **drawn}


def _factor_columns(comparison: Comparison) -> list[str]:
    """Return the settings that get a column of their own in the table of variants; none where they are too many."""
    longest = [max(len(value_text(case.factors[name])) for case in comparison.cases) for name in comparison.factors]
    return list(comparison.factors) if len(longest) <= 5 and max(longest, default=0) <= 14 else []


def _runs_of(comparison: Comparison, lines: Sequence[Line]) -> list[RunRow]:
    """Return the runs of the cases that the page shows."""
    cases = {line.case.key for line in lines}
    return [run for run in comparison.runs if (run.environment, run.variant) in cases]


def _machines(folder: Path, comparison: Comparison) -> dict[str, dict[str, Any]]:
    found = {}
    for place in comparison.environments:
        path = folder / "envs" / place.name / "machine.json"
        if path.is_file():
            found[place.name] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _overhead(comparison: Comparison) -> str:
    known = [case.profiler_overhead for case in comparison.cases if case.profiler_overhead is not None]
    if not known:
        return "not known: no run was profiled"
    return f"a profiled step takes {text.ratio(min(known))} to {text.ratio(max(known))} times as long as a timed one"


def _notes(comparison: Comparison) -> list[str]:
    """Return what runs warned of, which limits cut them, and what could not be known; alike notes once."""
    places: dict[str, list[str]] = {}
    for run in comparison.runs:
        said = [f"cut by {run.stopped_by}"] if run.stopped_by else []
        said += [*run.warnings, *(f"{key} is not known: {why}" for key, why in run.unknown.items())]
        where = "/".join((run.environment, run.variant, str(run.repeat)))
        why = comparison.unknown.get(f"runs/{where}/analysis")
        for note in [*said, *([f"not explained: {why}"] if why else [])]:
            places.setdefault(note, []).append(where)
    others = [f"{key}: {why}" for key, why in comparison.unknown.items() if not key.startswith("runs/")]
    return others + [f"{note} ({_listed(where, len(comparison.runs))})" for note, where in places.items()]


def _listed(places: list[str], runs: int) -> str:
    if len(places) == runs:
        return "all runs" if runs > 1 else "the only run"
    shown = "; ".join(places[:3])
    return shown if len(places) <= 3 else f"{shown}; and {len(places) - 3} more of {runs} runs"


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the leaves of a document as (dotted key, text)."""
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _flat(inner, f"{prefix}{key}.")
        elif key != "schema":
            yield f"{prefix}{key}", text.UNKNOWN if inner is None else value_text(inner)
