"""The two sides of a comparison: a trace, a run, the runs of a variant, or a study, recognised by what is there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tracelock.analysis import document
from tracelock.diagnosis.model import Diagnosed
from tracelock.errors import Problem, TracelockError
from tracelock.io import read_json
from tracelock.study.gather import Measured
from tracelock.study.records import PlanFile, read_plan, read_run
from tracelock.trace.source import address_of, not_fetched

Kind: TypeAlias = Literal["trace", "runs", "study"]
Analyse: TypeAlias = Callable[[Path], Diagnosed]


@dataclass(frozen=True)
class Side:
    """One side. `runs` are those of each case by its name; a bare trace has none, and `analysis` instead."""

    path: Path
    kind: Kind
    runs: dict[str, tuple[Measured, ...]]
    analysis: Diagnosed | None
    workload: str | None
    baseline: str | None = None
    packages: dict[str, str] | None = None
    unlocked: bool | None = None

    @property
    def first(self) -> tuple[Measured, ...]:
        """The runs of the baseline, or of the only case."""
        if self.baseline in self.runs:
            return self.runs[self.baseline]
        return next(iter(self.runs.values()), ())


def read_side(path: Path, analyse: Analyse) -> Side:
    """Return what lies at `path`.

    Parameters
    ----------
    analyse
        Makes the analysis of a trace file.

    Raises
    ------
    TracelockError
        If nothing is there, or nothing that can be compared.
    """
    if not path.exists() and (address := address_of(path)):
        raise TracelockError(not_fetched(address))
    if not path.exists():
        raise TracelockError(Problem(str(path), "is not there", "give a trace, a run's folder or a study's results"))
    if path.is_dir():
        return _folder(path)
    if path.name == "run.json":
        return _folder(path.parent)
    if path.name in ("plan.json", "comparison.json"):
        return _folder(path.parent)
    if path.name == "analysis.json":
        return Side(path, "trace", {}, document.read(path, Diagnosed), None)
    return Side(path, "trace", {}, analyse(path), None)


def _folder(path: Path) -> Side:
    if (path / "plan.json").is_file():
        return _study(path, read_plan(path))
    files = [path / "run.json"] if (path / "run.json").is_file() else sorted(path.glob("*/run.json"))
    if not files:
        what = "holds neither run.json (a run), nor folders with one (a variant), nor plan.json (a study)"
        raise TracelockError(Problem(str(path), what, "give results/<study>, or a folder below its runs/"))
    return _runs(path, [file.parent for file in files])


def _runs(path: Path, folders: list[Path]) -> Side:
    measured = tuple(_measured(folder) for folder in folders)
    variant = folders[0].parent.resolve()
    spec = variant / "spec.json"
    workload = str(read_json(spec, "spec").get("workload")) if spec.is_file() else None
    environment = variant.parent
    place = environment.parents[1] / "envs" / environment.name if len(environment.parts) > 2 else Path("none")
    name = measured[0].run.variant
    return Side(path, "runs", {name: measured}, None, workload, name, _packages(place), _unlocked(place))


def _study(path: Path, plan: PlanFile) -> Side:
    place = plan.environments[0]
    runs: dict[str, tuple[Measured, ...]] = {}
    for variant in plan.variants:
        folders = sorted(file.parent for file in (path / "runs" / place / variant.id).glob("*/run.json"))
        if found := tuple(_measured(folder) for folder in folders):
            runs[variant.id] = found
    if not runs:
        raise TracelockError(Problem(str(path), f"holds no finished run in its environment {place}"))
    envs = path / "envs" / place
    return Side(path, "study", runs, None, plan.workload, plan.baseline, _packages(envs), _unlocked(envs))


def _measured(folder: Path) -> Measured:
    run = read_run(folder / "run.json")
    if not run.timed.steps or run.timed.duration_us <= 0:
        raise TracelockError(Problem(str(folder / "run.json"), "holds no timed step", "make the run again"))
    try:
        return Measured(run, document.read(folder / "analysis.json", Diagnosed))
    except TracelockError:
        return Measured(run, None)


def _packages(folder: Path) -> dict[str, str] | None:
    """Return the versions of what an environment holds, None where there is no snapshot of it."""
    file = folder / "packages.json"
    if not file.is_file():
        return None
    found: list[Any] = read_json(file, "packages").get("packages", [])
    return {str(one.get("name")): str(one.get("version")) for one in found if one.get("name")}


def _unlocked(folder: Path) -> bool | None:
    file = folder / "check.json"
    return bool(read_json(file, "envcheck").get("unlocked")) if file.is_file() else None
