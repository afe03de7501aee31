"""Tables as pandas frames: of an analysis, and of the columns of a trace. pandas is optional."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from tracelock.analysis.model import Analysis
from tracelock.errors import Problem, TracelockError
from tracelock.trace.columns import DeviceKind, HostKind, Trace

if TYPE_CHECKING:
    import pandas as pd

TEXTS = ("name", "shapes", "types", "stack")  # columns of ids in Trace.texts
KINDS: dict[str, type[IntEnum]] = {"host": HostKind, "device": DeviceKind}


def frames(source: Analysis | Trace) -> dict[str, pd.DataFrame]:
    """Return the tables of an analysis, or the columns of a trace, by name.

    Parameters
    ----------
    source
        Of an `Analysis`: each of its lists (``steps``, ``operators``, ``kernels``, …), one row an entry; what an entry
        holds itself becomes columns ``breakdown_us.kernel``. Of a `Trace`: ``host``, ``device``, ``memory`` and
        ``flows`` with times in nanoseconds, and names and kinds as categories.

    Raises
    ------
    TracelockError
        If pandas is not installed.

    """
    if isinstance(source, Trace):
        return {table: _columns(source, table) for table in ("host", "device", "memory", "flows")}
    tables = {each.name: getattr(source, each.name) for each in fields(source)}
    return {name: _rows(rows) for name, rows in tables.items() if isinstance(rows, tuple)}


def require_pandas() -> Any:
    """Return pandas.

    Raises
    ------
    TracelockError
        If it is not installed.
    """
    try:
        import pandas as pd
    except ImportError:
        raise TracelockError(
            Problem(
                "frames",
                "needs pandas, which is not installed",
                "pip install pandas, into the environment of tracelock",
            )
        ) from None
    return pd


def _rows(rows: Sequence[Any]) -> pd.DataFrame:
    frame: pd.DataFrame = require_pandas().DataFrame([dict(_flat(row)) for row in rows])
    return frame


def _flat(row: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for each in fields(row):
        value = getattr(row, each.name)
        if is_dataclass(value):
            yield from _flat(value, f"{prefix}{each.name}.")
        else:
            yield prefix + each.name, value


def _columns(trace: Trace, table: str) -> pd.DataFrame:
    pandas, rows = require_pandas(), getattr(trace, table)
    columns: dict[str, Any] = {each.name: getattr(rows, each.name) for each in fields(rows)}
    for column in TEXTS:
        if column in columns:
            columns[column] = _categories(pandas, columns[column], trace.texts)
    if table in KINDS:
        names = [kind.name.lower() for kind in KINDS[table]]
        columns["kind"] = pandas.Categorical.from_codes(columns["kind"], names)
    frame: pd.DataFrame = pandas.DataFrame(columns)
    return frame


def _categories(pandas: Any, identifiers: Any, texts: Sequence[str]) -> Any:
    """Return texts as a categorical of those that occur; the id -1 is a missing value."""
    used = np.unique(identifiers[identifiers >= 0])
    codes = np.where(identifiers >= 0, np.searchsorted(used, identifiers), -1)
    return pandas.Categorical.from_codes(codes, [texts[each] for each in used.tolist()])
