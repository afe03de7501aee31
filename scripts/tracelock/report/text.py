"""Figures as a person reads them: units, digits, intervals, labels. What is not known is a dash."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tracelock.study.comparison import Case
from tracelock.study.overview import value_text
from tracelock.study.stats import Interval

UNKNOWN = "–"
_SPACE = "\N{NO-BREAK SPACE}"  # between a number and its unit
UNLOCKED = "‡"  # marks whatever was measured in an environment that has no lock or differs from it

_TIMES = ((1e6, "s"), (1e3, "ms"), (1.0, "µs"))
_BYTES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


def digits(value: float, significant: int = 3) -> str:
    """Return a number with at least `significant` significant digits, thousands grouped, no exponent."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else UNKNOWN
    places = max(0, significant - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{places}f}"


def count(value: float | None) -> str:
    """Return a number that is whole most of the time: ``256``, ``2.33``."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if value == round(value) else digits(value)


def time_scale(values_us: Sequence[float]) -> tuple[float, str]:
    """Return divisor and unit (µs, ms, s) in which the largest of `values_us` is at least 1."""
    return _scale(_TIMES, values_us)


def byte_scale(values: Sequence[float]) -> tuple[float, str]:
    """Return divisor and unit (B, kB, MB, GB; powers of 1000) in which the largest of `values` is at least 1."""
    return _scale(_BYTES, values)


def time(value_us: float | None) -> str:
    """Return a time with its unit: ``178 ms``."""
    return _with_unit(value_us, _TIMES)


def size(value: float | None) -> str:
    """Return a number of bytes with its unit: ``1.25 GB``."""
    return _with_unit(value, _BYTES)


def percent(share: float | None) -> str:
    """Return a share as a percentage: ``42 %``, ``0.8 %``."""
    if share is None:
        return UNKNOWN
    value = 100 * share
    return f"{value:.0f}{_SPACE}%" if abs(value) >= 10 or value == 0 else f"{value:.1f}{_SPACE}%"


def ratio(value: float | None) -> str:
    """Return a ratio: ``0.56``."""
    return UNKNOWN if value is None else f"{value:.2f}" if value >= 0.1 else digits(value, 2)


def rate(value: float | None) -> str:
    """Return a number per second: ``340/s``."""
    return UNKNOWN if value is None else f"{digits(value)}/s"


def time_interval(interval: Interval | None) -> str:
    """Return the ends of an interval of times in the unit of its figure: ``178–182 ms``."""
    if interval is None:
        return UNKNOWN
    scale, unit = time_scale([interval.value])
    return f"{digits(interval.low / scale)}–{digits(interval.high / scale)}{_SPACE}{unit}"


def throughput(interval: Interval) -> str:
    """Return a rate of samples with its interval: ``340 (335–341) samples/s``."""
    return f"{digits(interval.value)} ({digits(interval.low)}–{digits(interval.high)}){_SPACE}samples/s"


def ratio_interval(interval: Interval | None) -> str:
    """Return the ends of an interval of ratios: ``0.55–0.57``."""
    return UNKNOWN if interval is None else f"{ratio(interval.low)}–{ratio(interval.high)}"


def rate_interval(interval: Interval | None) -> str:
    """Return the ends of an interval of rates: ``335–341/s``."""
    return UNKNOWN if interval is None else f"{digits(interval.low)}–{digits(interval.high)}/s"


def saved(interval: Interval) -> str:
    """Return what a ratio of times below 1 saves, with its interval: ``44 % less time (43–45 %)``."""
    low, high = sorted((1 - interval.high, 1 - interval.low))
    return f"{_bare(1 - interval.value)}{_SPACE}% less time ({_bare(low)}–{_bare(high)}{_SPACE}%)"


def mark(unlocked: bool | None) -> str:
    """Return the mark of results that were made outside a checked lock, or nothing."""
    return UNLOCKED if unlocked else ""


def label(case: Case, environments: int) -> str:
    """Return what distinguishes a case: the settings that vary, and the environment where there are several."""
    parts = [f"{name}={value_text(value)}" for name, value in case.factors.items()]
    parts = [case.environment, *parts] if environments > 1 else parts
    return (", ".join(parts) or case.variant) + mark(case.unlocked)


def shorten(text: str, most: int) -> str:
    """Return `text` with its middle replaced by … where it is longer than `most` characters."""
    if len(text) <= most:
        return text
    head = (most - 1 + 1) // 2
    return f"{text[:head]}…{text[len(text) - (most - 1 - head) :]}"


def shorten_all(texts: Sequence[str], most: int) -> list[str]:
    """Return `texts` of at most `most` characters; where they are longer, the part in which they differ is kept."""
    if all(len(text) <= most for text in texts) or len(set(texts)) < 2:
        return [shorten(text, most) for text in texts]
    start = _common(texts)
    end = _common([text[start:][::-1] for text in texts])
    context = max((most - 2 - max(len(text) - start - end for text in texts)) // 2, 0)
    start, end = max(start - context, 0), max(end - context, 0)
    head, tail = "…" if start else "", "…" if end else ""
    return [shorten(f"{head}{text[start : len(text) - end]}{tail}", most) for text in texts]


def span(values: Iterable[int], joint: str = "–") -> str:
    """Return the least and the largest of some counts, one where they are equal, ``0`` without any."""
    known = sorted(set(values)) or [0]
    return str(known[0]) if len(known) == 1 else f"{known[0]}{joint}{known[-1]}"


def plural(count: int, word: str) -> str:
    """Return ``1 run``, ``3 runs``."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _common(texts: Sequence[str]) -> int:
    """Return the length of the start that all texts share."""
    lowest, highest = min(texts), max(texts)
    pairs = enumerate(zip(lowest, highest, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(lowest), len(highest)))


def _bare(share: float) -> str:
    return f"{100 * share:.0f}" if abs(share) >= 0.1 else f"{100 * share:.1f}"


def _scale(units: Sequence[tuple[float, str]], values: Sequence[float]) -> tuple[float, str]:
    largest = max((abs(value) for value in values), default=0.0)
    return next((entry for entry in units if largest >= entry[0]), units[-1])


def _with_unit(value: float | None, units: Sequence[tuple[float, str]]) -> str:
    if value is None:
        return UNKNOWN
    scale, unit = _scale(units, [value])
    return f"{digits(value / scale)}{_SPACE}{unit}"
