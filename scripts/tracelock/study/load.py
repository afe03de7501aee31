"""Read a study file, check all of it, and plan it. Everything that is wrong is said at once."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tracelock.errors import Problem, TracelockError, nearest
from tracelock.runner.command.factors import OUTSIDE
from tracelock.runner.settings import STANDARD, Setting
from tracelock.runner.settings import defaults as default_settings
from tracelock.runner.workloads.tables import BY_WORKLOAD
from tracelock.study.declared import declared_settings, defined_functions, workload_source
from tracelock.study.model import DEFAULT_ENVIRONMENT, Settings, Study, study_from
from tracelock.study.plan import Plan, make_plan
from tracelock.study.shape import shape_problems, sound_part
from tracelock.study.source import KeyPath, Source, read_yaml


def load_study(file: Path) -> tuple[Study, Settings]:
    """Return a checked study and the defaults of all settings that its workload understands.

    Raises
    ------
    TracelockError
        With every problem of the file: shape, names and values of settings, the workload itself.
    """
    source = read_yaml(file)
    if not isinstance(source.value, dict):
        raise TracelockError(Problem(str(file), "is empty or no mapping; a study needs name, workload and baseline"))
    problems = shape_problems(source)
    sound = sound_part(source) if problems else source.value
    if sound is None:
        raise TracelockError(problems)
    study = study_from(file, sound)
    if study.command:
        return _command_study(source, study, problems), {}
    own, others = _workload_settings(source, study)
    problems += [*others, *_setting_problems(source, study, own), *_threshold_problems(source, study)]
    if problems:
        raise TracelockError(problems)
    return study, default_settings(own or ())


def _command_study(source: Source, study: Study, problems: list[Problem]) -> Study:
    """Return a study of a command, checked: its script's own names of factors are not known."""
    known = {setting.name: setting for setting in STANDARD if setting.name in OUTSIDE}
    for path, name, value in _all_settings(study):
        fault = known[name].fault(value) if name in known else ""
        if fault:
            problems.append(Problem(source.where(path), fault, known[name].meaning))
    problems += [*_stray_rules(source, study), *_threshold_problems(source, study)]
    if problems:
        raise TracelockError(problems)
    return study


def load_plan(file: Path, environments: tuple[str, ...] | None = None, gpu: bool | None = None) -> Plan:
    """Return the plan of a study file.

    Parameters
    ----------
    environments
        Names in place of the study's own.
    gpu
        Whether its runs may find a GPU; None looks at this machine.
    """
    study, defaults = load_study(file)
    may_have = study.device == "cuda" or (gpu_here() if gpu is None else gpu)
    return make_plan(study, defaults, environments, may_have)


def gpu_here() -> bool:
    """Return whether this machine may have a GPU that torch computes on: NVIDIA's, AMD's, or one under WSL."""
    return any(Path("/dev", name).exists() for name in ("nvidiactl", "kfd", "dxg"))


def plan_for_workflow(file: str, use_conda: bool, options: Mapping[str, Any]) -> Plan:
    """Return the plan for Snakemake, with environments that exist under this way of deployment.

    Parameters
    ----------
    use_conda
        Whether Snakemake builds environments. Without it all runs happen in the driver's own, called "default".
    options
        Snakemake's config: ``environment`` names another one in place of the study's; with ``cluster``, or with
        ``gpu=yes``, the runs are made on other machines, which may have a GPU.

    Raises
    ------
    SystemExit
        With one line for each problem: Snakemake shows a traceback for other exceptions.
    """
    try:
        environments = workflow_environments(Path(file), use_conda, options.get("environment"))
        elsewhere = bool(options.get("cluster")) or str(options.get("gpu", "")) in ("yes", "True")
        return load_plan(Path(file), environments, True if elsewhere else None)
    except TracelockError as error:
        lines = [f"tracelock: error: {problem}" for problem in error.problems]
        print("\n".join(lines), file=sys.stderr)
        raise SystemExit(error.exit_code) from None


def workflow_environments(file: Path, use_conda: bool, chosen: Any = None) -> tuple[str, ...]:
    """Return the names of the environments in which a study runs."""
    if not use_conda:
        return (DEFAULT_ENVIRONMENT,)
    if chosen:
        return (str(chosen),)
    study, _ = load_study(file)
    gpu = study.device == "cuda" or (study.device == "auto" and Path("/dev/nvidiactl").exists())
    fallback = "pytorch-2.5-cu118" if gpu else "pytorch-2.5-cpu"
    return tuple(fallback if name == DEFAULT_ENVIRONMENT else name for name in study.environments)


def _workload_settings(source: Source, study: Study) -> tuple[tuple[Setting, ...] | None, list[Problem]]:
    """Return the settings that the workload declares, and what is wrong with the reference to it."""
    where = source.where(("workload", "build"))
    place, function = study.workload.rsplit(":", 1)
    code = workload_source(study.workload, study.file.parent)
    if code is None:
        kind = "file (relative to the study file)" if place.endswith(".py") else "module"
        return None, [Problem(where, f"names a {kind} that does not exist: {place}")]
    try:
        names = defined_functions(code)
    except SyntaxError as error:
        line = f"line {error.lineno}: " if error.lineno else ""
        return None, [Problem(where, f"names a file that Python cannot read: {code}: {line}{error.msg}")]
    shipped = next((own for name, own in BY_WORKLOAD.items() if name.rpartition(":")[0] == place), None)
    own = shipped or declared_settings(code)
    if function not in names:
        return own, [Problem(where, f"{place} has no function {function}", nearest(function, sorted(names)))]
    return own, []


def _setting_problems(source: Source, study: Study, own: tuple[Setting, ...] | None) -> Iterator[Problem]:
    """Yield what is wrong with any setting of the study, wherever it stands."""
    known = {setting.name: setting for setting in (*STANDARD, *(own or ()))}
    free = own is None
    for path, name, value in _all_settings(study):
        if name in known:
            fault = known[name].fault(value)
            if fault:
                yield Problem(source.where(path), fault, known[name].meaning)
        elif not free or (path[0] != "workload" and name not in study.workload_settings):
            yield Problem(source.where(path), "is no setting of this workload", _nearest_setting(name, list(known)))
    yield from _stray_rules(source, study)


def _threshold_problems(source: Source, study: Study) -> list[Problem]:
    """Return what is wrong with the thresholds."""
    try:
        from tracelock.diagnosis.thresholds import read_thresholds
    except ImportError:  # a driver with Snakemake alone: the rule that uses them checks them
        return []
    try:
        read_thresholds(study.thresholds, source.where(("thresholds",)))
    except TracelockError as error:
        return list(error.problems)
    return []


def _nearest_setting(name: str, known: list[str]) -> str:
    return nearest(name, known) or f"known: {', '.join(known)}"


def _all_settings(study: Study) -> Iterator[tuple[KeyPath, str, Any]]:
    """Yield (key path, name, value) of every setting that a study names."""
    for name, value in study.workload_settings.items():
        yield ("workload", "settings", name), name, value
    for name, value in study.baseline.items():
        yield ("baseline", name), name, value
    for name, values in study.factors.items():
        for position, value in enumerate(values):
            yield ("factors", name, position), name, value
    for position, listed in enumerate(study.variants):
        for name, value in listed.items():
            yield ("variants", position, name), name, value


def _stray_rules(source: Source, study: Study) -> Iterator[Problem]:
    """Yield exclusions and baselines that can match nothing."""
    for position, rule in enumerate(study.exclude):
        for name, value in rule.items():
            where = source.where(("exclude", position, name))
            if name not in study.factors:
                yield Problem(where, "is no factor of this study", nearest(name, list(study.factors)))
            elif value not in study.factors[name]:
                yield Problem(where, f"is {value!r}, which is none of the factor's values {study.factors[name]}")
