"""Where the files of a study lie, and what the workflow asks about its plan."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracelock.study.place import PACKAGE, SCRIPTS
from tracelock.study.plan import Plan


@dataclass(frozen=True)
class Layout:
    """Paths of one study below ``results/<name>``, as texts with forward slashes, relative to the working folder."""

    plan: Plan
    results: str = "results"

    @property
    def base(self) -> str:
        """``results/<name>``."""
        return f"{self.results}/{self.plan.study.name}"

    def specs(self) -> list[str]:
        """Return the path of every variant's ``spec.json``."""
        return [
            f"{self.base}/runs/{environment}/{variant.id}/spec.json"
            for environment in self.plan.environments
            for variant in self.plan.variants
        ]

    def runs(self, file: str) -> list[str]:
        """Return the path of `file` in the folder of every planned run, in the order of the plan."""
        return [f"{self.base}/runs/{run.environment}/{run.variant}/{run.repeat}/{file}" for run in self.plan.runs]

    def environments(self, file: str) -> list[str]:
        """Return the path of `file` in the folder of every environment."""
        return [f"{self.base}/envs/{environment}/{file}" for environment in self.plan.environments]

    def priority(self, environment: str, variant: str, repeat: int) -> int:
        """Return the priority of a planned run: the earlier in the plan, the higher."""
        return self._priorities.get((environment, variant, repeat), 0)

    @functools.cached_property
    def _priorities(self) -> dict[tuple[str, str, int], int]:
        total = len(self.plan.runs)
        return {(run.environment, run.variant, run.repeat): total - run.order for run in self.plan.runs}


def priority_in(runs: Sequence[Mapping[str, Any]], environment: str, variant: str, repeat: int) -> int:
    """Return the priority of a run among the runs of a plan: the earlier in its order, the higher; 0 if it is none."""
    for run in runs:
        if (run["environment"], run["variant"], run["repeat"]) == (environment, variant, repeat):
            return len(runs) - int(run["order"])
    return 0


def code_digest(*parts: str) -> str:
    """Return a digest of the program files that a rule's results depend on.

    Snakemake watches the files that a rule names; a changed helper module would rerun nothing.

    Parameters
    ----------
    parts
        Folders and files of the package ("runner", "study/rounds.py"), programs beside it ("run_workload.py").
    """
    sha = hashlib.sha256()
    for file in _files(parts):
        inside = file.is_relative_to(PACKAGE)
        sha.update(file.relative_to(PACKAGE.parent if inside else SCRIPTS).as_posix().encode())
        sha.update(file.read_bytes())
    return sha.hexdigest()[:16]


def _files(parts: Iterable[str]) -> list[Path]:
    found: list[Path] = []
    for part in parts:
        folder = PACKAGE / part
        if folder.is_dir():
            found += sorted(folder.rglob("*.py"))
        else:
            found.append(folder if folder.is_file() else SCRIPTS / part)
    return found
