"""The plan of a study: which runs, in which order, with which settings. Its bytes depend on the study alone."""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tracelock.io import digest, file_digest, schema, stable_json, write_text
from tracelock.study.model import DEFAULT_ENVIRONMENT, Settings, Study
from tracelock.study.variants import Dropped, Variant, expand

# The keys of a spec that say where it belongs; all others determine what is measured.
PLACE = ("schema", "digest", "experiment", "environment", "variant", "baseline")


@dataclass(frozen=True)
class Run:
    """One measurement. `order` counts from 0 over the whole study."""

    environment: str
    variant: str
    repeat: int
    order: int


@dataclass(frozen=True)
class Plan:
    """All that a study will do."""

    study: Study
    environments: tuple[str, ...]
    variants: tuple[Variant, ...]
    dropped: tuple[Dropped, ...]
    runs: tuple[Run, ...]
    defaults: Settings
    gpu: bool  # whether runs may find a GPU
    workload_digest: str | None

    @property
    def baseline(self) -> Variant:
        """The variant that the others are compared with."""
        return self.variants[0]

    @property
    def expected_s(self) -> float | None:
        """Seconds that the runs take, one after the other, as the study's author saw them; None if not said."""
        each = self.study.expected_run_s
        return None if each is None else each * len(self.runs)

    def variant(self, identifier: str) -> Variant:
        """Return a variant by its id."""
        return next(variant for variant in self.variants if variant.id == identifier)


def make_plan(study: Study, defaults: Settings, environments: tuple[str, ...] | None = None, gpu: bool = True) -> Plan:
    """Return the plan of a study.

    Parameters
    ----------
    defaults
        Values of the standard settings.
    environments
        Names to use in place of the study's own (without conda there is only the driver's environment).
    gpu
        Whether runs may find a GPU; where they cannot, settings that need one make no variants of their own.
    """
    # What a script of its own makes of a setting is not known.
    gpu = bool(study.command) or (gpu and study.device != "cpu")
    names = study.environments if environments is None else environments
    threads = {} if study.threads is None else {"threads": study.threads}
    base = {**defaults, **threads}
    variants, dropped = expand(study, base, gpu)
    runs = interleave(names, [variant.id for variant in variants], study.repeats, study.seed)
    return Plan(study, names, tuple(variants), tuple(dropped), runs, base, gpu, _workload_digest(study))


def interleave(environments: tuple[str, ...], variants: list[str], repeats: int, seed: int) -> tuple[Run, ...]:
    """Return every (environment, variant, repeat), repeat by repeat, shuffled within each repeat.

    A drift of the machine (heat, another tenant) then falls on all variants alike instead of on the last ones.
    """
    order = random.Random(seed)  # noqa: S311  no secret: the order must be repeatable
    runs: list[Run] = []
    for repeat in range(1, repeats + 1):
        pairs = [(environment, variant) for environment in environments for variant in variants]
        order.shuffle(pairs)
        runs += [Run(*pair, repeat, len(runs) + number) for number, pair in enumerate(pairs)]
    return tuple(runs)


def spec(plan: Plan, variant: Variant, environment: str) -> dict[str, Any]:
    """Return the document that the runner is given for one variant in one environment (``tracelock/spec/1``)."""
    study = plan.study
    measured = {
        "workload": _portable(study),
        **({"command": list(study.command), "factors_as": study.factors_as} if study.command else {}),
        "workload_digest": plan.workload_digest,
        "settings": variant.settings,
        "device": study.device,
        "seed": study.seed,
        "timing": asdict(study.timing),
        "profiler": asdict(study.profiler),
        "limits": asdict(study.limits),
    }
    if study.exclusive != "device":  # only then: what is measured already stays valid
        measured["exclusive"] = study.exclusive
    place = {
        "experiment": study.name,
        "environment": environment,
        "variant": variant.id,
        "baseline": variant.id == plan.baseline.id,
    }
    return seal(measured, place)


def seal(measured: dict[str, Any], place: dict[str, Any]) -> dict[str, Any]:
    """Return the spec of `measured`, everything that determines a measurement, with its digest, at `place`."""
    return {"schema": schema("spec"), **measured, "digest": digest(measured), **place}


def plan_document(plan: Plan) -> dict[str, Any]:
    """Return the plan as ``tracelock/plan/1``."""
    study = plan.study
    body = {
        "experiment": study.name,
        "description": study.description,
        "workload": _portable(study),
        "seed": study.seed,
        "repeats": study.repeats,
        "baseline": plan.baseline.id,
        "environments": list(plan.environments),
        "device": study.device,
        "exclusive": study.exclusive,
        "factors": study.factors,
        "variants": [
            {
                "id": variant.id,
                "settings": variant.settings,
                "overrides": variant.overrides,
                "digest": spec(plan, variant, DEFAULT_ENVIRONMENT)["digest"],
            }
            for variant in plan.variants
        ],
        "dropped": [asdict(dropped) for dropped in plan.dropped],
        "runs": [asdict(run) for run in plan.runs],
        "timing": asdict(study.timing),
        "profiler": asdict(study.profiler),
        "limits": asdict(study.limits),
        "thresholds": study.thresholds,
        "remedies": asdict(study.remedies),
        "precision": None if study.precision is None else float(study.precision.rstrip("% ")) / 100,
        "max_repeats": study.max_repeats,
        "repeat_disturbed": study.repeat_disturbed,
        "stacks": study.stacks,
        "allow_unlocked": study.allow_unlocked,
        "expected_s": plan.expected_s,
    }
    if (study.keep_traces, study.max_total_gb) != ("all", None):  # only then: plans that are there stay as they are
        body["traces"] = {"keep": study.keep_traces, "max_total_gb": study.max_total_gb}
    return {"schema": schema("plan"), "digest": digest(body), "study_file": study.file.name, **body}


def write_plan(plan: Plan, folder: Path) -> None:
    """Write ``plan.json`` and each variant's ``spec.json`` below `folder`; files that are right are left alone."""
    for environment in plan.environments:
        for variant in plan.variants:
            path = folder / "runs" / environment / variant.id / "spec.json"
            write_if_changed(path, stable_json(spec(plan, variant, environment)))
    write_if_changed(folder / "plan.json", stable_json(plan_document(plan)))


def write_if_changed(path: Path, text: str) -> None:
    """Write `text` unless `path` holds it already: an untouched file makes nothing run again."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)


def _portable(study: Study) -> str:
    """Return the workload with a file's path relative to the working folder where it lies below it."""
    if study.command:
        return study.workload
    place, function = study.workload.rsplit(":", 1)
    if not place.endswith(".py"):
        return study.workload
    file = _workload_file(study)
    inside = file.is_relative_to(Path.cwd())
    return f"{file.relative_to(Path.cwd()).as_posix() if inside else file.as_posix()}:{function}"


def _workload_file(study: Study) -> Path:
    return (study.file.parent / study.workload.rsplit(":", 1)[0]).resolve()


def _workload_digest(study: Study) -> str | None:
    """Return the digest of a workload's own file, so that an edited workload is measured again."""
    if study.command:
        scripts = [Path(word) for word in study.command if word.endswith((".py", ".sh")) and Path(word).is_file()]
        return file_digest(scripts[0]) if scripts else None
    if not study.workload.rsplit(":", 1)[0].endswith(".py"):
        return None
    return file_digest(_workload_file(study))
