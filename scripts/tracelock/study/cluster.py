"""Where and how a batch system runs a study: the section ``cluster`` of a study file, over that of a site file.

A site file says once for all studies what a cluster wants (partition, account, ...). It is found, in this order, by
Snakemake's config ``site=FILE``, by the variable ``TRACELOCK_SITE``, or as ``tracelock/site.yaml`` in the user's
configuration folder. What a study says itself wins, key by key.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from tracelock.errors import Problem, TracelockError
from tracelock.study.shape import section_problems
from tracelock.study.source import read_yaml

SITE_VARIABLE = "TRACELOCK_SITE"
# Starting Python and torch, building the workload, writing the trace: beside the steps, which max_duration_s bounds.
_AROUND_A_RUN_S = 120


@dataclass(frozen=True)
class Cluster:
    """What is asked of the batch system for the job of one batch of runs."""

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    gpus: int | None = None  # None: one, unless the study runs on the CPU
    gpu_model: str | None = None
    cpus: int = 4
    mem_mb: int = 8000
    share: Literal["nothing", "node"] = "nothing"
    runs_per_job: int = 48
    extra: str = ""

    def sbatch_options(self) -> str:
        """Return the further options of sbatch: a node of one's own unless it is shared, and what the site adds."""
        return shlex.join([*(["--exclusive"] if self.share == "nothing" else []), *shlex.split(self.extra)])

    def resources(self, device: str) -> dict[str, Any]:
        """Return the resources of a measuring job, in the words of Snakemake's executor for SLURM.

        Parameters
        ----------
        device
            The study's: ``cpu`` asks for no GPU.
        """
        gpus = (0 if device == "cpu" else 1) if self.gpus is None else self.gpus
        asked = {
            "constraint": self.constraint,
            "gpu": gpus or None,
            "gpu_model": self.gpu_model if gpus else None,
            "slurm_extra": self.sbatch_options() or None,
        }
        return {**self.where, **_known(asked)}

    @property
    def where(self) -> dict[str, Any]:
        """Return what every job needs, measuring or not."""
        return _known({"slurm_partition": self.partition, "slurm_account": self.account, "qos": self.qos})


def _known(asked: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in asked.items() if value is not None}


def minutes_of(runs: int, max_duration_s: float) -> int:
    """Return how long a job of so many runs may take, in minutes: each run's own bound, and what is around it."""
    return int(runs * (max_duration_s + _AROUND_A_RUN_S) / 60) + 5


def cluster_of(study_section: Mapping[str, Any], site: str | None = None) -> Cluster:
    """Return what holds for a study.

    Parameters
    ----------
    study_section
        The study's own ``cluster``, checked with its file.
    site
        The site file, None for the one of the environment or of the user's configuration.

    Raises
    ------
    TracelockError
        With everything that is wrong with the site file.
    """
    return Cluster(**{**_site(site), **study_section})


def _site(named: str | None) -> dict[str, Any]:
    chosen = named or os.environ.get(SITE_VARIABLE)
    file = Path(chosen) if chosen else _default_site()
    if not chosen and not file.is_file():
        return {}
    source = read_yaml(file)
    if not isinstance(source.value, dict):
        raise TracelockError(Problem(str(file), "is no mapping", f"keys: {', '.join(_KEYS)}"))
    if problems := section_problems(source, "cluster"):
        raise TracelockError(problems)
    return dict(source.value)


def _default_site() -> Path:
    folder = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111  no error without HOME
    return Path(folder) / "tracelock" / "site.yaml"


_KEYS = tuple(part.name for part in fields(Cluster))
