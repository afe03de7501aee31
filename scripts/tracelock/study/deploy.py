"""How the workflow finds the Python and the packages of each rule."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def prepare_processes() -> None:
    """Set what every job's process inherits.

    The driver's own Python comes first on PATH, so that ``python3`` means it where no environment is activated;
    an activated environment puts itself before it. Packages of ``~/.local`` would shadow those of an environment,
    and nothing would say so: PYTHONNOUSERSITE keeps them out.
    """
    folder = str(Path(sys.executable).parent)
    if os.environ.get("PATH", "").split(os.pathsep)[0] != folder:
        os.environ["PATH"] = os.pathsep.join([folder, os.environ.get("PATH", "")])
    os.environ["PYTHONNOUSERSITE"] = "1"


def uses_conda(methods: Any) -> bool:
    """Return whether Snakemake's deployment methods include conda."""
    return "conda" in {str(method) for method in methods or ()}


def shown(path: Path) -> str:
    """Return a path relative to the working folder where it lies below it.

    Paths stand among the parameters of rules, and a changed parameter makes a rule run again: a checkout that is moved
    with its results must not be measured again.
    """
    return path.relative_to(Path.cwd()).as_posix() if path.is_relative_to(Path.cwd()) else path.as_posix()


def results_folder(config: Mapping[str, Any]) -> str:
    """Return the folder of all results, from Snakemake's config."""
    return str(config.get("results", "results")).rstrip("/")
