"""What one run has to do: spec.json, read and checked as a whole before anything starts.

Standard library only: it is read before torch is imported, because threads and devices are set before that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracelock.errors import Problem, TracelockError, nearest
from tracelock.io import digest, file_digest, read_json
from tracelock.runner.protocol import SECTIONS, Limits, Profiling, Timing, settings_of
from tracelock.runner.settings import Setting, check

_TEXTS = (
    Setting("experiment", "str", "", "name of the study"),
    Setting("environment", "str", "", "name of the environment"),
    Setting("variant", "str", "", "id of the variant"),
    Setting("digest", "str", "", "digest of the variant's resolved settings"),
    Setting("workload", "str", "", "module:function or path/file.py:function"),
    Setting("workload_digest", "str", None, "SHA-256 of the workload file, so that an edited one is another spec"),
    Setting("baseline", "bool", False, "whether the other variants are compared with this one"),
    Setting("device", "str", "auto", "where it runs", allowed=("auto", "cpu", "cuda")),
    Setting("exclusive", "str", "device", "what no other run may use meanwhile", allowed=("device", "machine")),
    Setting("factors_as", "str", "flags", "how a command is told", allowed=("flags", "env", "json", "hydra")),
    Setting("seed", "int", 0, "seed of every random generator", minimum=0),
)
_REQUIRED = ("experiment", "environment", "variant", "workload")


@dataclass(frozen=True)
class Spec:
    """One variant's run, as spec.json states it."""

    path: Path
    experiment: str
    environment: str
    variant: str
    digest: str
    spec_digest: str
    workload: str
    settings: dict[str, Any]
    device: str
    seed: int
    command: tuple[str, ...]
    factors_as: str
    timing: Timing
    profiler: Profiling
    limits: Limits
    exclusive: str = "device"


def read_spec(path: Path) -> Spec:
    """Read spec.json.

    Raises
    ------
    TracelockError
        With everything that is wrong with it: unknown and missing keys, wrong values, wrong standard settings.
        The settings that a workload adds are checked by the workload.
    """
    document = read_json(path, "spec")
    problems = _problems(document, str(path)) or _too_few_steps(document, str(path))
    if problems:
        raise TracelockError(problems)
    texts: dict[str, Any] = {setting.name: document.get(setting.name, setting.default) for setting in _TEXTS}
    del texts["baseline"], texts["workload_digest"]  # for the plan, not for the run
    texts["digest"] = texts["digest"] or digest(document["settings"])
    return Spec(
        path=path,
        spec_digest=file_digest(path),
        settings=document["settings"],
        command=tuple(document.get("command") or ()),
        timing=Timing(**_section(document, "timing")),
        profiler=Profiling(**_section(document, "profiler")),
        limits=Limits(**_section(document, "limits")),
        **texts,
    )


def _section(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {**{setting.name: setting.default for setting in settings_of(name)}, **document.get(name, {})}


def _problems(document: Mapping[str, Any], path: str) -> list[Problem]:
    """Return everything that is wrong with the document."""
    others = (*SECTIONS, "settings", "schema", "labels", "command")
    top = {key: value for key, value in document.items() if key not in others}
    problems = _faults(top, _TEXTS, path, (*SECTIONS, "settings", "labels", "command"))
    problems += [Problem(f"{path}: {key}", "is missing") for key in _REQUIRED if not document.get(key)]
    for name in SECTIONS:
        section = document.get(name, {})
        if isinstance(section, dict):
            problems += _faults(section, settings_of(name), f"{path}: {name}")
        else:
            problems.append(Problem(f"{path}: {name}", f"is {section!r}, expected a mapping"))
    settings = document.get("settings")
    if not isinstance(settings, dict):
        return [*problems, Problem(f"{path}: settings", f"is {settings!r}, expected a mapping")]
    # What a command leaves to its script is not known: its loader may well have workers.
    known = {"num_workers": 1, **settings} if document.get("command") else settings
    return problems + check(known, None, f"{path}: settings")


def _too_few_steps(document: Mapping[str, Any], path: str) -> list[Problem]:
    """Return the problem of a bound on steps that leaves none to be timed."""
    window, most = Profiling(**_section(document, "profiler")).steps, _section(document, "limits")["max_steps"]
    if most is None or most > window:
        return []
    what = f"is {most}, but the profiler alone takes {window} steps (wait + warmup + active, times repeat)"
    return [Problem(f"{path}: limits.max_steps", what, f"allow {window + 1} or more")]


def _faults(
    given: Mapping[str, Any], table: tuple[Setting, ...], where: str, others: tuple[str, ...] = ()
) -> list[Problem]:
    """Return the problems of one level of keys."""
    known = {setting.name: setting for setting in table}
    problems = []
    for key, value in given.items():
        place = f"{where}.{key}" if ": " in where else f"{where}: {key}"
        if key not in known:
            hint = nearest(key, [*known, *others]) or f"known: {', '.join([*known, *others])}"
            problems.append(Problem(place, "is an unknown key", hint))
        elif fault := known[key].fault(value):
            problems.append(Problem(place, fault))
    return problems
