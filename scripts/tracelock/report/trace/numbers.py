"""Figures as the page of a trace shows them; `assets/core.js` shows the same ones in the same words."""

from __future__ import annotations

UNKNOWN = "–"
_SPACE = "\N{NO-BREAK SPACE}"
_TIMES = ((1e6, "s"), (1e3, "ms"), (1.0, "µs"), (1e-3, "ns"))


def time(value_us: float | None) -> str:
    """Return microseconds with a unit that suits them: ``177.6 ms``."""
    if value_us is None:
        return UNKNOWN
    for scale, unit in _TIMES:
        if abs(value_us) >= scale:
            return f"{_digits(value_us / scale)}{_SPACE}{unit}"
    return f"0{_SPACE}µs" if value_us == 0 else f"<{_SPACE}1{_SPACE}ns"


def share(value: float | None) -> str:
    """Return a part of a whole: ``33.4 %``."""
    if value is None:
        return UNKNOWN
    return f"<{_SPACE}0.1{_SPACE}%" if 0 < value < 0.0005 else f"{100 * value:.1f}{_SPACE}%"


def _digits(value: float) -> str:
    size = abs(value)
    return f"{value:,.0f}" if size >= 1000 else f"{value:.{1 if size >= 10 else 2}f}"
