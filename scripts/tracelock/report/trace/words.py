"""The words that pages of traces share, and texts of the trace cut to a length that a page can bear."""

from __future__ import annotations

from typing import Final

LONGEST: Final = 1200  # characters of a name that a page keeps

PART_WORDS: Final = {
    "kernel": "kernels",
    "memcpy": "copies",
    "memset": "memory sets",
    "communication": "communication",
    "runtime": "runtime calls",
    "dataloader": "data loading",
    "cpu_op": "CPU operators",
    "other": "other",
}
CAUSE_WORDS: Final = {
    "dataloader": "waits for data",
    "host": "waits for host code",
    "synchronization": "host waits for the GPU",
    "launch": "launch latency",
    "communication": "communication",
    "unattributed": "unknown",
}


def clipped(text: str) -> str:
    """Return `text`, with its middle left out where it is longer than a page can bear."""
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]} … {len(text) - 2 * half:,} characters … {text[-half:]}"
