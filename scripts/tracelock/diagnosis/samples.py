"""Read samples.csv, in one way for every use: numbers as numbers, lists of processes as their sum, texts as texts."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import TypeAlias

Column: TypeAlias = list[float | str | None]


def read_samples(path: Path) -> dict[str, Column]:
    """Return the columns of a run's samples by name; empty where the file is absent.

    A cell of several numbers (memory of each worker) is their sum, one that is no number (reasons of throttling) the
    text itself, and an empty one None.
    """
    if not path.is_file():
        return {}
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    return {name: [_value(row[name]) for row in rows] for name in (rows[0] if rows else {})}


def _value(cell: str | None) -> float | str | None:
    text = (cell or "").strip()
    if not text:
        return None
    try:
        number = sum(map(float, text.split()))
    except ValueError:
        return text
    return number if math.isfinite(number) else None
