"""Read samples.csv: one column a list, numbers as numbers, empty cells as None."""

from __future__ import annotations

import csv
from pathlib import Path

Column = list[float | str | None]


def read_samples(path: Path) -> dict[str, Column]:
    """Return the columns of a run's samples by name; empty where the file is absent."""
    if not path.is_file():
        return {}
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    return {name: [_value(row[name]) for row in rows] for name in (rows[0] if rows else {})}


def _value(text: str | None) -> float | str | None:
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        return text
