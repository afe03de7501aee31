"""Why a second measurement may differ from the first: what differs between the two, what matters most first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracelock.bundle.choose import made_by
from tracelock.bundle.opened import Opened
from tracelock.envs.diff import compare_manifests
from tracelock.envs.factor import EnvironmentDifference, change_rows
from tracelock.envs.manifest import read_snapshot
from tracelock.errors import TracelockError
from tracelock.io import read_json
from tracelock.study.comparison import Comparison

_PACKAGES = 8


@dataclass(frozen=True)
class Reason:
    """A difference between two measurements; the list is in the order in which one may explain a result."""

    kind: str  # device, driver, packages, threads, disturbed, fewer runs, code
    what: str
    original: str
    again: str


def reasons(opened: Opened, results: Path, again: Comparison) -> list[Reason]:
    """Return what differs between the original and a second measurement whose results lie in `results`."""
    original = opened.comparison
    found: list[Reason] = []
    for name in dict.fromkeys((*opened.document.environments, *(place.name for place in again.environments))):
        found += _of_environment(opened.results / "envs" / name, results / "envs" / name)
    found = [*_devices(original, again), *found, *_threads(original, again), *_disturbed(original, again)]
    found += [*_fewer(original, again), *_code(opened)]
    order = ("device", "driver", "packages", "threads", "disturbed", "fewer runs", "code")
    unique = dict.fromkeys(reason for reason in found if reason.original != reason.again)
    return sorted(unique, key=lambda reason: order.index(reason.kind))


def _devices(original: Comparison, again: Comparison) -> Iterator[Reason]:
    sides = ["; ".join(sorted({f"{r.device_name or r.device}" for r in side.runs})) for side in (original, again)]
    yield Reason("device", "device of the runs", *sides)


def _of_environment(one: Path, two: Path) -> Iterator[Reason]:
    try:
        machines = [read_json(folder / "machine.json", "machine") for folder in (one, two)]
    except TracelockError:
        machines = []
    if machines:
        yield from _machines(*machines)
    try:
        snapshots = [read_snapshot(folder / "packages.json") for folder in (one, two)]
    except TracelockError:
        return
    changes = compare_manifests(*snapshots)
    difference = EnvironmentDifference(two.name, one.name, tuple(c for c in changes if c.name != "tracelock"))
    for name, before, after, _ in change_rows(difference, _PACKAGES):
        yield Reason("packages", name, before or "–", after or "present")


def _machines(one: Mapping[str, Any], two: Mapping[str, Any]) -> Iterator[Reason]:
    facts: tuple[tuple[str, str, Callable[[Mapping[str, Any]], str]], ...] = (
        ("device", "GPUs", lambda m: ", ".join(str(gpu.get("name")) for gpu in m.get("gpus") or ()) or "none"),
        ("device", "processor", lambda m: str((m.get("cpu") or {}).get("model"))),
        ("device", "memory (GiB)", lambda m: f"{(m.get('ram_bytes') or 0) / 2**30:.0f}"),
        ("driver", "driver", lambda m: str(m.get("driver"))),
        ("driver", "CUDA of the driver", lambda m: str(m.get("cuda_driver"))),
        ("driver", "kernel", lambda m: str(m.get("kernel"))),
        ("driver", "C library", lambda m: str(m.get("glibc"))),
        ("threads", "cores that may be used", lambda m: str((m.get("cpu") or {}).get("cores_usable"))),
        ("threads", "variables", lambda m: _variables(m.get("variables") or {})),
        ("threads", "governor", lambda m: str((m.get("cpu") or {}).get("governor"))),
    )
    for kind, what, fact in facts:
        yield Reason(kind, what, fact(one), fact(two))


def _variables(variables: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(variables.items())) or "none"


def _threads(original: Comparison, again: Comparison) -> Iterator[Reason]:
    sides = [", ".join(sorted({str(run.threads) for run in side.runs})) for side in (original, again)]
    yield Reason("threads", "threads of torch", *sides)


def _disturbed(original: Comparison, again: Comparison) -> Iterator[Reason]:
    sides = [
        f"{len(side.disturbed())} runs took far longer than the others of their kind" for side in (original, again)
    ]
    yield Reason("disturbed", "disturbed runs", *sides)
    scatter = [max((_scatter(case.step) for case in side.cases), default=0.0) for side in (original, again)]
    if max(scatter) > 2 * min(scatter) and max(scatter) > 0.1:
        yield Reason("disturbed", "widest interval of a step time", *(f"± {share:.0%}" for share in scatter))


def _scatter(interval: Any) -> float:
    return (interval.high - interval.low) / 2 / interval.value if interval and interval.value else 0.0


def _fewer(original: Comparison, again: Comparison) -> Iterator[Reason]:
    counts = [str(min((case.runs for case in side.cases), default=0)) for side in (original, again)]
    yield Reason("fewer runs", "runs of each variant", *counts)


def _code(opened: Opened) -> Iterator[Reason]:
    here, there = made_by(), opened.document.tracelock
    yield Reason("code", "tracelock", f"{there.version} ({there.source})", f"{here['version']} ({here['source']})")
    for entry in opened.document.code:
        if not entry.as_it_ran:
            yield Reason("code", entry.file, "as it ran", "names or secrets in it replaced")
    for line in opened.document.changed:
        yield Reason("code", "packed later than measured", "", line)
