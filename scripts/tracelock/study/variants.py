"""Variants: every combination of the factors that the study asks for, each once.

A variant has a readable, path-safe id made of what distinguishes it (``batch_size=64,num_workers=4``) and a digest of
everything that determines its measurement.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tracelock.io import digest
from tracelock.study.model import Settings, Study

_LONGEST_ID = 120
_NEED_WORKERS: Settings = {"persistent_workers": False, "prefetch_factor": None}
_NEED_GPU = ("pin_memory", "non_blocking", "cudnn_benchmark")
# Values that the runner refuses on the CPU.
_ENDS_WITHOUT_GPU = (("amp", "fp16"), ("cuda_graph", True))


@dataclass(frozen=True)
class Variant:
    """One combination of settings."""

    id: str
    settings: Settings  # all of them, resolved
    overrides: Settings = field(default_factory=dict)  # what distinguishes it from the study's settings


@dataclass(frozen=True)
class Dropped:
    """A combination that is not measured, and why."""

    overrides: Settings
    reason: str
    why: str = ""  # the settings that are to blame, the same text for all combinations of one kind


def variant_id(overrides: Settings) -> str:
    """Return the readable, path-safe id of a set of overrides; "base" for none.

    Letters, digits and ``._+-`` of a value stay; anything else becomes ``~``, and the id of a value that lost
    something, or of a very long list, ends with eight digits of a digest, so that two variants never share a folder.
    """
    if not overrides:
        return "base"
    parts, lossy = [], False
    for name, value in overrides.items():
        text = _text(value)
        safe = re.sub(r"[^A-Za-z0-9._+-]", "~", text)
        lossy = lossy or safe != text
        parts.append(f"{name}={safe}")
    identifier = ",".join(parts)
    if lossy or len(identifier) > _LONGEST_ID:
        identifier = f"{identifier[: _LONGEST_ID - 9]}-{digest(overrides)[:8]}"
    return identifier


def effective(settings: Settings, gpu: bool = True) -> Settings:
    """Return `settings` with the usual value of those that have no effect beside the others.

    A DataLoader without workers has nothing to keep alive and nothing to fetch ahead (torch refuses both). Without a
    GPU there is nothing to pin memory for, no copy to wait for, and no cuDNN.
    """
    if settings.get("num_workers") == 0:
        settings = {**settings, **_NEED_WORKERS}
    if not gpu:
        settings = {**settings, **{name: False for name in _NEED_GPU if name in settings}}
    return settings


def without_effect(settings: Settings, gpu: bool) -> list[str]:
    """Return why settings have no effect, one text for each reason: ``pin_memory without effect: no GPU here``."""
    plain = effective(settings, gpu)
    names = [name for name, value in settings.items() if plain[name] != value]
    reasons = {"num_workers=0": [name for name in names if name in _NEED_WORKERS]}
    reasons["no GPU here"] = [name for name in names if name not in _NEED_WORKERS]
    return [f"{', '.join(found)} without effect: {why}" for why, found in reasons.items() if found]


def refused(settings: Settings, gpu: bool) -> str:
    """Return which setting cannot be had without a GPU, and so ends every run that has it; empty if none."""
    if gpu:
        return ""
    return ", ".join(f"{name}={_text(settings[name])}" for name, bad in _ENDS_WITHOUT_GPU if settings.get(name) == bad)


def make_variant(study: Study, defaults: Settings, overrides: Settings, gpu: bool = True) -> Variant:
    """Return the variant of a study with these overrides over its settings."""
    settings = {**defaults, **study.workload_settings, **overrides}
    return Variant(variant_id(overrides), effective(settings, gpu), overrides)


def expand(study: Study, defaults: Settings, gpu: bool = True) -> tuple[list[Variant], list[Dropped]]:
    """Return the variants of a study, the baseline first, and the combinations that are left out.

    Parameters
    ----------
    defaults
        Values of the standard settings that neither the study nor a variant names.
    gpu
        Whether runs may find a GPU: False is to be sure that they do not.
    """
    kept: dict[str, Variant] = {}
    dropped: list[Dropped] = []
    for overrides in _combinations(study):
        variant = make_variant(study, defaults, overrides, gpu)
        needs = refused(variant.settings, gpu)
        key = digest(variant.settings)
        if any(_matches(overrides, rule) for rule in study.exclude) and variant.overrides != _baseline(study):
            dropped.append(Dropped(overrides, "excluded by the study"))
        elif key in kept and overrides != kept[key].overrides:
            given = {**defaults, **study.workload_settings, **overrides}
            why = "; ".join(without_effect(given, gpu))
            dropped.append(Dropped(overrides, f"measures the same as {kept[key].id}", why))
        elif needs and variant.overrides != _baseline(study):
            dropped.append(Dropped(overrides, "cannot be run here", f"{needs} needs a GPU: none here"))
        else:
            kept.setdefault(key, variant)
    return list(kept.values()), dropped


def _combinations(study: Study) -> Iterator[Settings]:
    """Yield overrides: the baseline, the grid, then the list; each over the baseline's values."""
    baseline = _baseline(study)
    yield baseline
    names = list(study.factors)
    for values in itertools.product(*study.factors.values()):
        yield _ordered(study, {**baseline, **dict(zip(names, values, strict=True))})
    for listed in study.variants:
        yield _ordered(study, {**baseline, **listed})


def _baseline(study: Study) -> Settings:
    """Return the baseline's overrides; a factor that it does not name takes its first value."""
    first = {name: values[0] for name, values in study.factors.items()}
    return _ordered(study, {**first, **study.baseline})


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _ordered(study: Study, overrides: Settings) -> Settings:
    """Return `overrides` in one order for all variants: factors as the study lists them, then others by name."""
    names = [name for name in study.factors if name in overrides]
    return {name: overrides[name] for name in [*names, *sorted(set(overrides) - set(names))]}


def _matches(overrides: Settings, rule: dict[str, Any]) -> bool:
    return all(name in overrides and overrides[name] == value for name, value in rule.items())
