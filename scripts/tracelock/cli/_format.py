"""Figures as the terminal shows them. What is not known is a dash, and never 0."""

from __future__ import annotations

import re

UNKNOWN = "–"
_TIMES = ((1e6, "s"), (1e3, "ms"), (1.0, "µs"), (1e-3, "ns"))
_SIZES = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"))
_RATES = ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"))
_NOISE = re.compile(r"^void |\(anonymous namespace\)::|at::native::")


def time(value_us: float | None) -> str:
    """Return microseconds in a unit that suits them: ``177.6 ms``."""
    if value_us is None:
        return UNKNOWN
    for scale, unit in _TIMES:
        if abs(value_us) >= scale:
            return f"{_digits(value_us / scale)} {unit}"
    return "0 µs" if value_us == 0 else "< 1 ns"


def size(value: float | None) -> str:
    """Return bytes in a unit that suits them, powers of 1024: ``2.60 GiB``."""
    if value is None:
        return UNKNOWN
    for scale, unit in _SIZES:
        if abs(value) >= scale:
            return f"{_digits(value / scale)} {unit}"
    return f"{value:,.0f} B"


def rate(value: float | None) -> str:
    """Return bytes per second, powers of 1000 as networks and buses count: ``10.1 GB/s``."""
    if value is None:
        return UNKNOWN
    for scale, unit in _RATES:
        if abs(value) >= scale:
            return f"{_digits(value / scale)} {unit}"
    return f"{value:.0f} B/s"


def share(value: float | None) -> str:
    """Return a part of a whole: ``33.4 %``."""
    if value is None:
        return UNKNOWN
    return "< 0.1 %" if 0 < value < 0.0005 else f"{100 * value:.1f} %"


def count(value: float | None) -> str:
    """Return a number of things: ``8,772``, and ``52.5`` for a mean of numbers."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if float(value).is_integer() or value >= 100 else f"{value:,.1f}"


def plural(number: int, word: str) -> str:
    """Return ``1 step``, ``6 steps``, ``6 launches``."""
    ending = "" if number == 1 else "es" if word.endswith(("s", "x", "ch", "sh")) else "s"
    return f"{number:,} {word}{ending}"


def bar(part: float, width: int = 20) -> str:
    """Return a bar for a part of a whole, 0..1; the least part that is there shows."""
    eighths = min(8 * width, max(round(8 * width * part), 1 if part > 0 else 0))
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def kernel(name: str) -> str:
    """Return a kernel's name without what all of them share."""
    return _NOISE.sub("", name)


def _digits(value: float) -> str:
    magnitude = abs(value)
    return (
        f"{value:,.0f}" if magnitude >= 1000 else f"{value:.{1 if magnitude >= 100 else 2 if magnitude < 10 else 1}f}"
    )
