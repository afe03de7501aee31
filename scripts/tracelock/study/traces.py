"""Which recorded traces a study keeps: keep_traces and max_total_gb of its file.

A trace goes only after its run was analysed. Which ones stay follows from the files of the runs alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tracelock.errors import TracelockError
from tracelock.io import read_json, schema, write_json
from tracelock.study.disturbed import cores_of, disturbance
from tracelock.study.policy import GB, Policy
from tracelock.study.taken import is_analysed, size_of, take_away, trace_files

SUMMARY = "traces.json"
_RUNS = ("runs/*/*/*/run.json", "rounds/*/runs/*/*/*/run.json")
_WAITING = 100  # traces that may wait for a choice while a study goes on, each choice reads all its runs
_SPARE = 0.8  # of max_total_gb, that is kept while a study goes on, so that not every further run needs a choice
_AT_ONCE = ("failed", "none")  # what a run's own files decide


@dataclass(frozen=True)
class Traced:
    """A run with the traces that lie in its folder. `cost` is the time of a sample, else of a step, in µs."""

    folder: Path
    case: tuple[str, str]
    repeat: int
    cost: float
    files: tuple[Path, ...]
    size: int
    analysed: bool
    odd: str | None  # what went wrong beside it

    @property
    def order(self) -> tuple[tuple[str, str], int, str]:
        """Where the run stands among all: nothing that depends on when files were read."""
        return self.case, self.repeat, self.folder.as_posix()


def finish(base: Path) -> dict[str, Any]:
    """Hold a finished study to its policy; write and return ``traces.json``, what stayed and what went."""
    plan = read_json(base / "plan.json", "plan")
    policy = Policy.of(plan)
    runs = _traced(base)
    for run, why in choose(runs, policy, plan.get("baseline", "")).items():
        take_away(run.folder, run.files, why)
    rows = [_row(base, run) for run in runs]
    kept, gone = [row for row in rows if row["bytes_kept"]], [row for row in rows if row["freed"]]
    document = {
        "schema": schema("traces"),
        "keep": policy.keep,
        "max_total_gb": None if policy.limit is None else policy.limit / GB,
        "kept": {"runs": len(kept), "bytes": sum(row["bytes_kept"] for row in kept)},
        "freed": {"runs": len(gone), "bytes": sum(row["freed"]["bytes"] for row in gone)},
        "runs": rows,
    }
    write_json(base / SUMMARY, document)
    return document


def after_analysis(run: Path) -> None:
    """Take away what the study need not keep, once the run of this run.json was analysed; else disks fill meanwhile."""
    base = _study_of(run)
    if base is None:
        return
    plan = read_json(base / "plan.json", "plan")
    policy = Policy.of(plan)
    if policy.keep in _AT_ONCE:
        for one in _read(run, base):
            if one.files and one.analysed and not _stays(one, policy):
                take_away(one.folder, one.files, policy.why)
    files = [file for pattern in _RUNS for record in base.glob(pattern) for file in trace_files(record.parent)]
    full = policy.limit is not None and sum(map(size_of, files)) > policy.limit
    if full or (policy.keep == "best" and len(files) > _WAITING):
        room = None if policy.limit is None else _SPARE * policy.limit
        for one, why in choose(_traced(base), policy, plan.get("baseline", ""), room).items():
            take_away(one.folder, one.files, why)


def choose(runs: Sequence[Traced], policy: Policy, baseline: str, room: float | None = None) -> dict[Traced, str]:
    """Return the runs whose traces go, each with the reason.

    Parameters
    ----------
    baseline
        Id of the variant that the others are compared with.
    room
        Bytes for all traces; by default those of the policy.
    """
    here = [run for run in runs if run.files]
    best = _best(runs, baseline)
    going = {
        run: policy.why
        for run in here
        if run.analysed and not (run in best if policy.keep == "best" else _stays(run, policy))
    }
    most = policy.limit if room is None else room
    if most is not None:
        standing = _nearest(runs)
        left = sorted(
            (run for run in here if run not in going),
            key=lambda run: (run.analysed, run not in best, not run.odd, run not in standing, run.order),
        )
        used = 0
        for run in left:
            used += run.size
            if used > most and run.analysed:
                used -= run.size
                going[run] = policy.full
    return going


def _stays(run: Traced, policy: Policy) -> bool:
    return policy.keep == "all" or (policy.keep == "failed" and run.odd is not None)


def _best(runs: Sequence[Traced], baseline: str) -> set[Traced]:
    """Return one run of the baseline and one of the fastest variant in each environment, nearest to their medians."""
    cost = _medians(runs)
    fastest = {
        min((case for case in cost if case[0] == environment), key=lambda case: (cost[case], case))
        for environment, _ in cost
    }
    return {run for run in _nearest(runs) if run.case in fastest or run.case[1] == baseline}


def _nearest(runs: Sequence[Traced]) -> set[Traced]:
    """Return of each variant the run with a trace whose time is nearest to the variant's median."""
    cost = _medians(runs)
    found: dict[tuple[str, str], Traced] = {}
    for run in sorted((run for run in runs if run.files), key=lambda run: (abs(run.cost - cost[run.case]), run.order)):
        found.setdefault(run.case, run)
    return set(found.values())


def _medians(runs: Sequence[Traced]) -> dict[tuple[str, str], float]:
    costs: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        costs.setdefault(run.case, []).append(run.cost)
    return {case: median(values) for case, values in costs.items()}


def _traced(base: Path) -> list[Traced]:
    """Return every run of a study and of its rounds, in a fixed order."""
    files = [file for pattern in _RUNS for file in base.glob(pattern)]
    return sorted((run for file in files for run in _read(file, base)), key=lambda run: run.order)


def _read(file: Path, base: Path) -> Iterator[Traced]:
    """Yield the run of a run.json; nothing where it cannot be read, so that nothing of it goes."""
    folder = file.parent
    with contextlib.suppress(TracelockError, KeyError, TypeError, ValueError, ZeroDivisionError):
        document = read_json(file, "run")
        timed, profiled = document["timed"], document.get("profiled") or {}
        files = trace_files(folder)
        odd = timed.get("stopped_by") or profiled.get("stopped_by") or disturbance(folder, _cores(base, document))
        yield Traced(
            folder,
            (document["environment"], document["variant"]),
            int(document["repeat"]),
            timed["duration_us"] / (timed.get("samples") or timed["steps"]),
            files,
            sum(map(size_of, files)),
            is_analysed(folder),
            odd,
        )


def _cores(base: Path, document: Mapping[str, Any]) -> int | None:
    return cores_of(base, document["environment"])


def _row(base: Path, run: Traced) -> dict[str, Any]:
    profiled = read_json(run.folder / "run.json", "run").get("profiled") or {}
    return {
        "folder": run.folder.relative_to(base).as_posix(),
        "bytes_kept": sum(map(size_of, trace_files(run.folder))),
        "freed": profiled.get("freed"),
    }


def _study_of(run: Path) -> Path | None:
    """Return the folder of results that a run.json belongs to, as a run of the study or of one of its rounds."""
    for above, pattern in zip((4, 6), _RUNS, strict=True):
        parents = run.absolute().parents
        if len(parents) > above and run.absolute().match(pattern) and (parents[above] / "plan.json").is_file():
            if above == 4 and parents[5].name == "rounds":
                continue
            return parents[above]
    return None
