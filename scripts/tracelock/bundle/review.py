"""What a reviewer of an archive would miss."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tracelock.bundle.choose import Choice
from tracelock.bundle.code import Repository
from tracelock.bundle.origin import Origin
from tracelock.envs.manifest import snapshot_content
from tracelock.errors import TracelockError
from tracelock.study import comparison as document
from tracelock.study.comparison import Comparison

FEW_RUNS = 3


def missing(origin: Origin, choice: Choice, repository: Repository) -> list[str]:
    """Return what a reviewer would miss, the gravest first, each with what mends it where something does."""
    found = document.read(origin.results / "comparison.json")
    return [
        *_runs(found),
        *_code(origin, repository),
        *_environments(origin, found),
        *_data(choice),
        *_rest(origin, choice),
    ]


def _runs(found: Comparison) -> Iterator[str]:
    for lost in found.missing:
        yield f"run {lost.variant} ({lost.environment}, repeat {lost.repeat}) has no result: {lost.reason}"
    few = min((case.runs for case in found.cases), default=0)
    if few < FEW_RUNS:
        yield f"the least measured variant has {few} run{'s' if few != 1 else ''}; {FEW_RUNS} show how much runs differ"
    for row in found.comparisons:
        if row.verdict == "unclear":
            yield f"{row.variant} against {row.reference_variant} is {row.difference.words}"
    for run in found.disturbed():
        yield f"run {run.variant} (repeat {run.repeat}) took {run.relative:.1f} times as long as the others of its kind"


def _code(origin: Origin, repository: Repository) -> Iterator[str]:
    yield from origin.changed
    if not origin.code and str(origin.plan["workload"]).rpartition(":")[0].endswith(".py"):
        yield f"the workload's file {origin.plan['workload']} was not found"
    if origin.code and repository.commit is None:
        yield f"where the code comes from: {repository.note}"
    if origin.code and repository.dirty:
        yield "the code was not committed: the archive holds a patch; commit it and name the commit"
    for name in repository.untracked:
        yield f"git does not know {name}, which the study needs: git add it"


def _environments(origin: Origin, found: Comparison) -> Iterator[str]:
    for place in found.environments:
        if place.unlocked or place.unlocked is None:
            yield f"environment {place.name} {place.note}: nobody can be sure to build the same"
        path = origin.results / "envs" / place.name / "packages.json"
        yield from _packages(place.name, path)


def _packages(name: str, path: Path) -> Iterator[str]:
    if not path.is_file():
        yield f"environment {name} has no snapshot of its packages"
        return
    try:
        packages = snapshot_content(path)[2]
    except TracelockError as error:
        yield f"environment {name}: its snapshot {error.problems[0].what}"
        return
    for package in packages:
        if package.unreproducible and package.name != "tracelock":
            yield f"environment {name}: nobody else can install {package.name}: {package.unreproducible}"
    if not path.with_name("machine.json").is_file():
        yield f"environment {name}: the machine's facts are not there"


def _data(choice: Choice) -> Iterator[str]:
    for left in choice.left_out:
        if left.why.startswith("data"):
            yield f"the data {left.name} ({left.bytes:,} bytes) is not in the archive: say in a README where to get it"


def _rest(origin: Origin, choice: Choice) -> Iterator[str]:
    traces = sum(not left.why.startswith("data") for left in choice.left_out)
    if traces:
        yield f"{traces} traces are left out; their sizes and hashes are in bundle.json (--traces all puts them in)"
    if not any(path.name.startswith(("LICEN", "COPYING")) for path in origin.extras()):
        yield "no licence: put a LICENSE file beside the study file"
    if not any(path.name == "CITATION.cff" for path in origin.extras()):
        yield "no authors: put a CITATION.cff beside the study file"
    if not origin.plan.get("description"):
        yield "the study has no description"
