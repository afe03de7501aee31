"""The tables of a study as pandas frames: ``tracelock.load_study(path).runs``. pandas is optional."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracelock.analysis.frames import require_pandas
from tracelock.analysis.notebook import UNKNOWN, paragraph, table, time_text
from tracelock.study import comparison as document
from tracelock.study.compare import compare
from tracelock.study.comparison import Comparison
from tracelock.study.overview import Line, overview
from tracelock.study.tables import TABLES

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class StudyFrames:
    """A study: its comparison, and its tables with the columns of docs/tables.md. What is not known is missing."""

    comparison: Comparison
    runs: pd.DataFrame
    variants: pd.DataFrame
    comparisons: pd.DataFrame
    operators: pd.DataFrame
    findings: pd.DataFrame

    def _repr_html_(self) -> str:
        """Return how a notebook shows it: each variant against the baseline, the fastest first."""
        rows = [_row(line) for line in overview(self.comparison)]
        runs = f"{self.comparison.experiment}: {len(self.comparison.runs)} runs, baseline {self.comparison.baseline}"
        heads = ("variant", "environment", "runs", "step", "time against the baseline", "verdict", "main finding")
        return paragraph(runs, strong=True) + table(heads, rows)


def _row(line: Line) -> tuple[str, ...]:
    case, against = line.case, line.against
    found = against.difference.ratio if against else None
    ratio = f"×{found.value:.2f} ({found.low:.2f}–{found.high:.2f})" if found else UNKNOWN
    verdict = (against.verdict or "not judged") if against else "baseline" if case.baseline else "not compared"
    step = time_text(case.step.value if case.step else None)
    return case.variant, case.environment, str(case.runs), step, ratio, verdict, case.explained.finding or UNKNOWN


def load_study(path: str | Path) -> StudyFrames:
    """Return the tables of the study whose results lie in `path` (``results/<experiment>``).

    Its comparison.json is read; where there is none yet, the runs that are there are compared.

    Raises
    ------
    TracelockError
        If pandas is not installed, or `path` holds no results of a study.
    """
    pandas, folder = require_pandas(), Path(path)
    file = folder / "comparison.json"
    found = document.read(file) if file.is_file() else compare(folder)
    frames = {
        table.name: pandas.DataFrame(
            [{column.name: column.get(row) for column in table.columns} for row in table.rows(found)],
            columns=[column.name for column in table.columns],
        )
        for table in TABLES
    }
    return StudyFrames(found, **frames)
