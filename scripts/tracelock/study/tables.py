"""The tables of a comparison as CSV, and their columns with unit and meaning: docs/tables.md is made from here."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracelock.io import write_text
from tracelock.study.comparison import Comparison
from tracelock.study.overview import overview, settings_text


@dataclass(frozen=True)
class Column:
    """A column. `get` returns the value of a row; None becomes an empty cell, which means: not known."""

    name: str
    unit: str
    meaning: str
    get: Callable[[Any], Any]


@dataclass(frozen=True)
class Table:
    """A table: what a row is, where the rows come from, and the columns."""

    name: str
    row: str
    rows: Callable[[Comparison], Iterable[Any]]
    columns: tuple[Column, ...]

    def csv(self, comparison: Comparison) -> str:
        """Return the table as CSV (RFC 4180 quoting, line feeds, a header line)."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([column.name for column in self.columns])
        for row in self.rows(comparison):
            writer.writerow([_cell(column.get(row)) for column in self.columns])
        return text.getvalue()


def write_tables(comparison: Comparison, folder: Path) -> list[Path]:
    """Write every table to ``<folder>/<name>.csv`` and return their paths."""
    paths = []
    for table in TABLES:
        paths.append(folder / f"{table.name}.csv")
        write_text(paths[-1], table.csv(comparison))
    return paths


def document_tables() -> str:
    """Return docs/tables.md: every table and column."""
    parts = [_INTRODUCTION]
    for table in TABLES:
        parts.append(f"\n## {table.name}.csv\n\n{table.row}\n\n| column | unit | meaning |\n| --- | --- | --- |\n")
        parts += [f"| `{column.name}` | {column.unit} | {column.meaning} |\n" for column in table.columns]
    return "".join(parts)


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, ensure_ascii=False, sort_keys=True) if value else ""
    return value


def _column(name: str, unit: str, meaning: str, path: str = "") -> Column:
    """Return a column that holds an attribute of the row; `path` may be dotted, what is absent on it is not known."""
    parts = (path or name).split(".")

    def get(row: Any) -> Any:
        for part in parts:
            row = getattr(row, part, None)
        return row

    return Column(name, unit, meaning, get)


def _with_interval(name: str, unit: str, meaning: str, path: str) -> tuple[Column, ...]:
    """Return three columns: the figure and both ends of its 95 % interval."""
    return (
        _column(name, unit, meaning, f"{path}.value"),
        _column(f"{name}_low", unit, f"lower end of the 95 % interval of `{name}`", f"{path}.low"),
        _column(f"{name}_high", unit, f"upper end of the 95 % interval of `{name}`", f"{path}.high"),
    )


def _case(prefix: str = "") -> tuple[Column, ...]:
    return (
        _column("environment", "", "name of the environment", f"{prefix}environment"),
        _column("variant", "", "id of the variant", f"{prefix}variant"),
        _column("unlocked", "", _UNLOCKED, f"{prefix}unlocked"),
    )


def _peaks(prefix: str) -> tuple[Column, ...]:
    return (
        _column("peak_rss_bytes", "B", "peak resident memory of the process", f"{prefix}peak_rss_bytes"),
        _column(
            "peak_tree_rss_bytes",
            "B",
            "peak resident memory of the process and its workers together; shared pages count in each",
            f"{prefix}peak_tree_rss_bytes",
        ),
        _column(
            "peak_allocated_bytes", "B", "peak of the accelerator's memory in use", f"{prefix}peak_allocated_bytes"
        ),
        _column(
            "peak_reserved_bytes",
            "B",
            "peak of the accelerator's memory that the caching allocator held",
            f"{prefix}peak_reserved_bytes",
        ),
    )


_UNLOCKED = "true: the environment has no lock or differs from it; empty: it was not checked"
_STATUS = {"MissingRun": "missing", "ExcludedRun": "excluded"}
_INTRODUCTION = """# The tables of a study

`scripts/compare.py --results results/<experiment>` writes them to `results/<experiment>/tables/`, from the same figures
as `comparison.json` and `report.html`. An empty cell means: not known; it is never a zero. Times are microseconds,
shares and ratios are fractions, lists and settings are JSON. How intervals and verdicts are made: `docs/comparison.md`.

This page is made from the columns themselves (`make docs`).
"""

_RUNS = (
    *_case(),
    _column("repeat", "", "number of the repeat, from 1"),
    Column(
        "status",
        "",
        "ok, missing (planned, without a result) or excluded (a result that was not used)",
        lambda row: _STATUS.get(type(row).__name__, "ok"),
    ),
    _column("reason", "", "why a run is missing or excluded"),
    _column("log", "", "log of a missing run, below the results folder"),
    _column("started", "UTC", "when the run started"),
    _column("host", "", "name of the machine"),
    _column("device", "", "device of the computation"),
    _column("device_name", "", "name of the device's model"),
    _column("python", "", "version of Python"),
    _column("torch", "", "version of torch"),
    _column("threads", "", "threads of torch's operators"),
    _column("steps", "", "timed steps"),
    _column("step_us", "µs", "duration of the timed part (without the profiler) divided by its steps"),
    _column("relative", "", "`step_us` divided by the median of its variant; above 1.5 the run was disturbed"),
    _column("disturbed", "", "what else used the machine, by the samples beside the run"),
    _column("median_step_us", "µs", "median of the timed steps"),
    _column("samples", "", "samples in the timed steps"),
    _column("throughput_per_s", "1/s", "samples a second in the timed part"),
    _column("loading_share", "", "share of the timed part spent waiting in `next(loader)`"),
    _column("profiled_step_us", "µs", "mean of the profiled steps"),
    _column("profiler_overhead", "", "mean profiled step divided by mean timed step"),
    _column("dataloader_share", "", "share of the profiled steps in the DataLoader and nowhere else, from the trace"),
    *_peaks(""),
    _column("stopped_by", "", "the limit that cut the run; empty: none did"),
    _column("trace", "", "file of the trace, in the folder of the run"),
    _column("trace_bytes", "B", "size of the trace as stored"),
    _column("trace_quality", "", "complete, salvaged or partial"),
    _column("finding", "", "main finding of this run's trace"),
    _column("digest", "", "digest of everything that determines the run"),
    _column("node", "", "node of the cluster, where a job of a batch system made the run"),
    _column("warnings", "", "what the run warned of"),
)

_VARIANTS = (
    *_case("case."),
    _column("baseline", "", "true for the variant that the others are compared with", "case.baseline"),
    _column("settings", "", "the settings that vary in the study", "case.factors"),
    _column("planned", "", "runs planned", "case.planned"),
    _column("runs", "", "runs with a result: what the figures of this line rest on", "case.runs"),
    *_with_interval("step_us", "µs", "median over runs of the run's `step_us`", "case.step"),
    _column("median_step_us", "µs", "median over runs of the run's `median_step_us`", "case.median_step_us"),
    *_with_interval("sample_us", "µs", "median over runs of the time per sample", "case.sample"),
    *_with_interval("throughput_per_s", "1/s", "samples a second: reciprocal of `sample_us`", "case.throughput"),
    *_with_interval(
        "ratio", "", "time against the baseline, below 1 is faster (see comparisons.csv)", "against.difference.ratio"
    ),
    _column("verdict", "", "faster, slower, no difference or unclear; empty: not judged", "against.verdict"),
    _column("loading_share", "", "median over runs of the run's `loading_share`", "case.loading.timed"),
    _column("loading_share_low", "", "lowest run", "case.loading.low"),
    _column("loading_share_high", "", "highest run", "case.loading.high"),
    _column("dataloader_share", "", "median over runs of the run's `dataloader_share`", "case.loading.traced"),
    _column(
        "utilization",
        "",
        "share of the profiled steps in which the accelerators were busy",
        "case.explained.device.utilization",
    ),
    _column("profiled_step_us", "µs", "median over runs of the run's `profiled_step_us`", "case.profiled_step_us"),
    _column("profiler_overhead", "", "median over runs of the run's `profiler_overhead`", "case.profiler_overhead"),
    *_peaks("case.peaks."),
    _column("finding", "", "main finding: the one that leads in most traces", "case.explained.finding"),
    _column("finding_runs", "", "traces that show it", "case.explained.finding_runs"),
    _column("analysed", "", "traces that were analysed", "case.explained.analysed"),
    _column("remedy", "", "its first remedy: settings, or advice for the code", "remedy_text"),
)

_COMPARISONS = (
    *_case(),
    _column("reference_environment", "", "environment of the reference"),
    _column("reference_variant", "", "the baseline, or the same variant where two environments are compared"),
    _column("metric", "", "what is compared: time per sample where both sides know it, else step time"),
    _column("runs", "", "runs of the variant"),
    _column("reference_runs", "", "runs of the reference"),
    *_with_interval("ratio", "", "time divided by the reference's time: below 1 is faster", "difference.ratio"),
    _column("step_ratio", "", "step time divided by the reference's step time, whatever a step holds"),
    _column("p_value", "", "Welch's t-test on the logarithms of the runs", "difference.p_value"),
    _column("p_adjusted", "", "the same after Holm's adjustment for the rows beside it", "difference.p_adjusted"),
    _column("p_permutation", "", "permutation test of the mean logarithm", "difference.p_permutation"),
    _column("p_smallest", "", "the least p that a permutation test of so few runs can give", "difference.p_smallest"),
    _column(
        "at_most",
        "",
        "the largest difference that the runs leave open (two one-sided tests at 5 %)",
        "difference.at_most",
    ),
    _column("more_runs", "", "further runs of each side that would tell an unclear one", "difference.more_runs"),
    _column("verdict", "", "faster, slower, no difference or unclear; empty: not judged"),
    _column("why", "", "what kept the verdict from being clear", "difference.why"),
    _column("changed", "", "settings that differ: from, to"),
)

_OPERATORS = (
    *_case(),
    _column("operator", "", "name of the operator", "name"),
    _column("runs", "", "traces that hold it"),
    _column("calls_per_step", "", "calls in a profiled step, median over runs"),
    _column("self_cpu_us", "µs", "host time of a step in the operator itself, median over runs"),
    _column("total_cpu_us", "µs", "host time of a step in it and in what it called"),
    _column("self_device_us", "µs", "device time of a step in the kernels that it launched itself"),
    _column("total_device_us", "µs", "device time of a step in all kernels launched below it"),
)

_FINDINGS = (
    *_case(),
    _column("rank", "", "1 is the main finding"),
    _column("finding", "", "code of the finding", "code"),
    _column("title", "", "the finding in words"),
    _column("severity", "", "info, warning or critical"),
    _column("confidence", "", "low, medium or high"),
    _column("runs", "", "traces that show it"),
    _column("analysed", "", "traces that were analysed"),
    _column("share_of_step", "", "part of the profiled step that the cause occupies, median over `runs`"),
    _column("gain_at_most", "", "part of the step that removing it can save at most, median over `runs`"),
    _column("evidence", "", "the facts that it rests on, from a typical run"),
    _column("placed", "", "what a further recording with Python stacks says of it, with the user's lines"),
    Column(
        "remedies", "", "settings or advice, in the order of preference", lambda row: [_remedy(r) for r in row.remedies]
    ),
    Column(
        "tested_by", "", "variants of the study that apply a remedy, with the ratio of time", lambda row: _tests(row)
    ),
)


def _remedy(remedy: Any) -> str:
    return settings_text(remedy.settings) or str(remedy.code or remedy.expect)


def _tests(row: Any) -> dict[str, float]:
    return {one.tested_by: one.difference.ratio.value for one in row.remedies if one.tested_by}


TABLES: tuple[Table, ...] = (
    Table(
        "runs",
        "One line a run: every planned run, and every result that was found and not used.",
        lambda comparison: (*comparison.runs, *comparison.missing, *comparison.excluded),
        _RUNS,
    ),
    Table("variants", "One line a variant in an environment: the overview.", overview, _VARIANTS),
    Table(
        "comparisons",
        "One line a comparison: each variant with the baseline of its environment, and, where there are several "
        "environments, with itself in the first one.",
        lambda comparison: comparison.comparisons,
        _COMPARISONS,
    ),
    Table(
        "operators",
        "One line an operator of a variant in an environment, per profiled step.",
        lambda comparison: comparison.operators,
        _OPERATORS,
    ),
    Table(
        "findings",
        "One line a finding of a variant in an environment.",
        lambda comparison: comparison.findings,
        _FINDINGS,
    ),
)
