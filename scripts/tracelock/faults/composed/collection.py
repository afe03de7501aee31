"""Run composed workloads below a folder, and hold what is said of each against what was measured."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import tracelock
from tracelock.analysis.analyze import analyze
from tracelock.diagnosis import Diagnosed, diagnose
from tracelock.diagnosis.recorded import recorded_beside
from tracelock.errors import EXIT_FAILED, Problem, TracelockError
from tracelock.faults.composed.mutations import BY_NAME, LOADER
from tracelock.faults.draw import WORTH
from tracelock.io import read_json, schema
from tracelock.trace import read_trace

PROGRAM = "tracelock.faults.composed.measure"
LIMIT_S = 180
SLACK = 0.03  # of the step: what eight recorded steps differ by from the unprofiled ones
SMALL = 0.05  # a fault that costs less is none
SHORTAGE = "loader"  # the truth's key for all loading together
HEALTHY = "no-bottleneck"
ONE = {"OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Said:
    """One case: what was measured, and what was said."""

    seed: int
    costs: dict[str, float]  # of each fault, and of all loading: part of the step
    clear: bool  # all rounds and both halves of them agree on which faults cost WORTH
    codes: tuple[str, ...]
    bounds: tuple[float | None, ...]  # of each finding
    estimates: tuple[float | None, ...]
    confidence: str  # of the first finding

    @property
    def worth(self) -> list[str]:
        """Return the faults that cost WORTH or more."""
        return [name for name, cost in self.costs.items() if cost >= WORTH]

    def names(self, fault: str) -> bool:
        """Return whether some finding names the fault."""
        return not codes_of(fault).isdisjoint(self.codes)

    @property
    def explained(self) -> set[str]:
        """Return the codes that some fault of SMALL cost or more would make right."""
        return {code for name, cost in self.costs.items() if cost >= SMALL for code in codes_of(name)}

    @property
    def is_right(self) -> bool:
        """Return whether the first finding is right: a fault that costs, or that nothing costs."""
        return not self.worth if self.codes[0] == HEALTHY else self.codes[0] in self.explained


def codes_of(fault: str) -> frozenset[str]:
    """Return the codes that name a fault; of loading as a whole, those of all its parts."""
    if fault == SHORTAGE:
        return frozenset((LOADER, "slow-collate", "slow-samples", "worker-startup"))
    return frozenset(BY_NAME[fault].codes)


def said(folder: Path, seeds: range, tell: Callable[[str], None]) -> Iterator[Said]:
    """Yield the answer to the case of each seed; measured once below `folder`, diagnosed each time.

    A case that cannot be measured is told, and left out.
    """
    for seed in seeds:
        case = folder / str(seed)
        try:
            if not (case / "truth.json").is_file():
                measure(seed, case)
        except TracelockError as error:
            tell(f"left out: {error}")
            continue
        found = judge(seed, case)
        tell(f"case {seed}: {', '.join(found.worth) or 'healthy'}; said: {', '.join(found.codes)}")
        yield found


def measure(seed: int, folder: Path) -> None:
    """Measure the case of a seed in a process of its own.

    Raises
    ------
    TracelockError
        If that fails, or takes longer than LIMIT_S.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join((str(Path(tracelock.__file__).parents[1]), os.environ.get("PYTHONPATH", "")))
    command = [sys.executable, "-m", PROGRAM, str(seed), str(folder)]
    env = {**os.environ, **ONE, "PYTHONPATH": path}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=env, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        raise TracelockError(Problem(f"case {seed}", f"took longer than {LIMIT_S} s"), EXIT_FAILED) from None
    if done.returncode:
        raise TracelockError(Problem(f"case {seed}", done.stderr.strip()[-400:]), EXIT_FAILED)


def judge(seed: int, folder: Path) -> Said:
    """Return what is said of a measured case."""
    truth = read_json(folder / "truth.json", "fault-truth")
    trace = folder / "trace.json.gz"
    found = diagnose(analyze(read_trace(trace)), run=recorded_beside(trace).run)
    return compare(seed, truth, found)


def compare(seed: int, truth: dict[str, Any], found: Diagnosed) -> Said:
    """Return a case as its truth and its findings."""
    costs = truth["costs"]
    return Said(
        seed=seed,
        costs={name: each["cost"] for name, each in costs.items()},
        clear=all(len({each[part] >= WORTH for part in ("low", "cost", "high")}) == 1 for each in costs.values()),
        codes=tuple(finding.code for finding in found.findings),
        bounds=tuple(finding.gain_at_most for finding in found.findings),
        estimates=tuple(finding.gain_estimate for finding in found.findings),
        confidence=found.findings[0].confidence,
    )


def grade(cases: list[Said]) -> dict[str, float | int | None]:
    """Return the shares by which a collection is judged; of cases whose truth is clear.

    ``right``: of faults that cost WORTH, those that some finding names. ``wrong``: those that none names, while the
    first finding is of something that costs nothing. ``silent_high``: those of which no cause at all is named, with
    high confidence. ``false_alarms``: of cases in which nothing costs SMALL, those with a cause. ``bound_held``: of
    findings that name one fault alone, those whose bound is no less than its cost, less SLACK.
    ``high_confidence_right``: of first findings of high confidence, those that are right.
    """
    clear = [case for case in cases if case.clear]
    faults = [(case, name) for case in clear for name in case.worth]
    missed = [(case, name) for case, name in faults if not case.names(name)]
    healthy = [case for case in clear if max(case.costs.values(), default=0.0) < SMALL]
    high = [case for case in clear if case.confidence == "high"]
    bounds = [held for case in clear for held in _bounds_held(case)]
    return {
        "cases": len(cases),
        "clear": len(clear),
        "faults": len(faults),
        "right": _share([case.names(name) for case, name in faults]),
        "wrong": _part(sum(case.codes[0] != HEALTHY and not case.is_right for case, _ in missed), len(faults)),
        "silent_high": _part(
            sum(case.codes[0] == HEALTHY and case.confidence == "high" for case, _ in missed), len(faults)
        ),
        "healthy": len(healthy),
        "false_alarms": _share([case.codes[0] != HEALTHY for case in healthy]),
        "bound_held": _share(bounds),
        "high_confidence_right": _share([case.is_right for case in high]),
    }


def _bounds_held(case: Said) -> Iterator[bool]:
    for code, bound in zip(case.codes, case.bounds, strict=True):
        meant = [name for name in case.worth if code in codes_of(name)]
        if len(meant) == 1 and bound is not None:
            yield bound >= case.costs[meant[0]] - SLACK


def _share(held: list[bool]) -> float | None:
    return _part(sum(held), len(held))


def _part(some: int, whole: int) -> float | None:
    return some / whole if whole else None


def document(seeds: range, cases: list[Said]) -> dict[str, Any]:
    """Return the document ``tracelock/random-faults/1``; its last key is ``grade``."""
    return {
        "schema": schema("random-faults"),
        "seeds": [seeds.start, seeds.stop],
        "cases": [asdict(case) for case in cases],
        "grade": grade(cases),
    }
