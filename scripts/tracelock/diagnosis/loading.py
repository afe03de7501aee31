"""How batches were loaded, as far as a trace and the settings tell."""

from __future__ import annotations

from tracelock.analysis.model import Operator
from tracelock.diagnosis.case import Case

SINGLE, MULTI = "_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"


def rows(case: Case) -> list[Operator]:
    """Return the DataLoader's iterators among the operators, the longest first."""
    found = [row for row in case.analysis.operators if row.name.startswith("enumerate(Data")]
    return sorted(found, key=lambda row: -row.total_cpu_us)


def in_main_process(case: Case) -> bool | None:
    """Return whether batches are made in the main process; None where neither trace nor settings say so.

    PyTorch names the row after the class of the iterator; the settings decide where that name is another.
    """
    names = " ".join(row.name for row in rows(case)[:1])
    if SINGLE in names or MULTI in names:
        return SINGLE in names
    workers = case.setting("num_workers")
    return None if workers is None else workers == 0
