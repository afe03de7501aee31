"""The environments of a project: which files make one.

``envs/<name>.yaml`` says what is wanted; ``envs/<name>.conda-lock.yml`` (or ``conda-lock.yml`` at the root, for the one
environment that it names as its source) says what that came to; Snakemake installs ``envs/<name>.<platform>.pin.txt``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tracelock.errors import Problem, TracelockError, nearest

PLATFORM = "linux-64"
ROOT_LOCK = "conda-lock.yml"
_SOURCES = re.compile(r"^  sources:\n((?:  - .*\n)+)", re.MULTILINE)


@dataclass(frozen=True)
class Environment:
    """The files of one environment; the lock and the pin may not exist yet."""

    root: Path
    name: str
    spec: Path
    lock: Path

    def pin(self, platform: str = PLATFORM) -> Path:
        """Return the pin file that Snakemake looks for beside the yaml on a platform."""
        return self.spec.with_name(f"{self.name}.{platform}.pin.txt")

    def shown(self, path: Path) -> Path:
        """Return a path as messages and comments name it: relative to the project."""
        return path.relative_to(self.root) if path.is_relative_to(self.root) else path


def environments(root: Path) -> dict[str, Environment]:
    """Return the environments of the project at `root`, by name."""
    main = _main_source(root)
    found: dict[str, Environment] = {}
    for spec in sorted((root / "envs").glob("*.yaml")):
        name = spec.stem
        own = spec.with_name(f"{name}.conda-lock.yml")
        lock = root / ROOT_LOCK if main == f"envs/{spec.name}" and not own.exists() else own
        found[name] = Environment(root, name, spec, lock)
    return found


def _main_source(root: Path) -> str | None:
    """Return the yaml that the root's lock was made from; read as text, so that a damaged lock can be named too."""
    try:
        match = _SOURCES.search((root / ROOT_LOCK).read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    return match[1].splitlines()[0][4:].strip().strip("'\"") if match else None


def find_environment(root: Path, name: str) -> Environment:
    """Return one environment by its name.

    Raises
    ------
    TracelockError
        If there is none of that name.
    """
    known = environments(root)
    if name not in known:
        if not known:
            raise TracelockError(Problem(str(root / "envs"), "holds no environment (*.yaml)", "run it in the project"))
        hint = nearest(name, list(known)) or f"there are: {', '.join(known)}"
        raise TracelockError(Problem("envs", f"there is no environment '{name}'", hint))
    return known[name]
