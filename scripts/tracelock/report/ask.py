"""What the page of a study can be asked: its variants, runs and operators as data beside the page."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

from tracelock.analysis.parts import IDLE_LABELS, STEP_LABELS
from tracelock.report import text
from tracelock.report.trace.pack import document
from tracelock.report.trace.words import clipped
from tracelock.study.comparison import Case, Comparison, KernelRow, OperatorRow
from tracelock.study.effects import interactions, main_effects, metric
from tracelock.study.overview import settings_text, value_text
from tracelock.study.stats import Interval

_ASSETS = Path(__file__).parent / "assets"
_SCRIPTS = ("core", "tables", "study")
OPERATORS = KERNELS = 60  # of a case, most expensive first: what a page of 200 variants can carry


def script() -> tuple[str, str]:
    """Return the script of the page, and its SHA-256 as a Content-Security-Policy names it."""
    code = '"use strict";\n' + "".join((_ASSETS / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS)
    return code, base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()


def study_data(comparison: Comparison) -> str:
    """Return the data of a study as letters that `assets/study.js` reads."""
    of = metric(comparison)
    names: dict[str, int] = {}
    return document(
        {
            "metric": of,
            "factors": [clipped(name) for name in comparison.factors],
            "parts": list(STEP_LABELS.values()),
            "causes": list(IDLE_LABELS.values()),
            "cases": [_case(comparison, case, of, names) for case in comparison.cases],
            "names": [clipped(name) for name in names],
            "effects": {place.name: _effects(comparison, place.name) for place in comparison.environments},
        }
    )


def _case(comparison: Comparison, case: Case, of: str, names: dict[str, int]) -> dict[str, Any]:
    against = comparison.against_baseline(case)
    time = case.sample if of == "time per sample" else case.step
    idle = case.explained.device.idle_causes if case.explained.device else None
    runs = [run for run in comparison.runs if (run.environment, run.variant) == case.key]
    return {
        "environment": clipped(case.environment),
        "label": clipped(text.label(case, len(comparison.environments))),
        "baseline": case.baseline,
        "settings": {clipped(name): clipped(value_text(value)) for name, value in case.settings.items()},
        "factors": [clipped(value_text(case.factors.get(name))) for name in comparison.factors],
        "time": _interval(time),
        "step": _interval(case.step),
        "runs": [[run.repeat, _run_time(run.step_us, run.throughput_per_s, of)] for run in runs],
        "loading": case.loading.timed,
        "peak": case.peaks.peak_allocated_bytes or case.peaks.peak_rss_bytes,
        "finding": clipped(case.explained.title or ""),
        "ratio": _interval(against.difference.ratio) if against else None,
        "verdict": against.difference.words if against else "",
        "profiled": case.profiled_step_us,
        "breakdown": _values(case.explained.breakdown, STEP_LABELS),
        "idle": _values(idle, IDLE_LABELS),
        "operators": [_operator(row, names) for row in comparison.operators_of(case)[:OPERATORS]],
        "kernels": [_kernel(row, names) for row in comparison.kernels_of(case)[:KERNELS]],
    }


def _run_time(step_us: float, throughput: float | None, of: str) -> float | None:
    if of == "step time":
        return round(step_us, 3)
    return round(1e6 / throughput, 4) if throughput else None


def _interval(found: Interval | None) -> list[float] | None:
    return None if found is None else [found.value, found.low, found.high]


def _values(source: object | None, names: dict[str, str]) -> list[float] | None:
    return None if source is None else [round(getattr(source, name), 5) for name in names]


def _operator(row: OperatorRow, names: dict[str, int]) -> list[float | None]:
    """Return name, calls, own host time and own device time of a step."""
    place = names.setdefault(row.name, len(names))
    device = None if row.self_device_us is None else round(row.self_device_us, 2)
    return [place, row.calls_per_step, round(row.self_cpu_us, 2), device]


def _kernel(row: KernelRow, names: dict[str, int]) -> list[int | float]:
    """Return name, what it is without a build's additions, calls and time of a step."""
    place, same = (names.setdefault(name, len(names)) for name in (row.name, row.identity))
    return [place, same, round(row.calls_per_step, 4), round(row.time_us, 2)]


def _effects(comparison: Comparison, environment: str) -> dict[str, Any]:
    main = [
        [clipped(each.factor), clipped(value_text(each.value)), clipped(value_text(each.reference)), each.ratio,
         each.least, each.most, each.contexts]
        for each in main_effects(comparison, environment)
    ]  # fmt: skip
    pairs = [
        [
            clipped(settings_text(dict(zip(each.factors, each.values, strict=True)))),
            each.together, each.expected, each.factor, each.contexts,
        ]
        for each in interactions(comparison, environment)
    ]  # fmt: skip
    return {"main": main, "pairs": pairs[:200], "left": max(0, len(pairs) - 200)}
