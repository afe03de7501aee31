"""Texts of a trace, cut to a length that a page can bear."""

from __future__ import annotations

from typing import Final

LONGEST: Final = 1200  # characters of a name that a page keeps


def clipped(text: str) -> str:
    """Return `text`, with its middle left out where it is longer than a page can bear."""
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]} … {len(text) - 2 * half:,} characters … {text[-half:]}"
