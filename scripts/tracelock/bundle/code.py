"""The user's own code: which files a workload imports, and what git says of them. Nothing is imported or run here.

Imports are followed in the source, so a module that is only imported by a computed name is not found; the list in the
archive says how it was made.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_PATCH_LIMIT = 1 << 20
_FUNCTION = re.compile(r"[^:]+:[A-Za-z_]\w*")
_LIBRARIES = ("site-packages", "dist-packages", ".venv", ".snakemake")


@dataclass(frozen=True)
class Repository:
    """The state of the user's repository; None for what is not known."""

    commit: str | None
    dirty: bool | None
    patch: str  # of tracked files against the commit; empty where there is none
    note: str = ""
    untracked: tuple[str, ...] = ()  # files of the study that git does not know


def first_files(workload: str, study_folder: Path, root: Path) -> list[Path]:
    """Return the files that a workload names itself.

    Parameters
    ----------
    workload
        ``path/file.py:function`` relative to `study_folder`, ``package.module:function`` of `root`, or the words of a
        command that runs in `root`.
    """
    if _FUNCTION.fullmatch(workload):
        place = workload.rpartition(":")[0]
        found = study_folder / place if place.endswith(".py") else _find(place.split("."), [root.resolve()])
        if found and found.is_file():
            return [found.resolve()]
    try:
        words = shlex.split(workload)
    except ValueError:
        return []
    files = [root / word for word in words if word.endswith((".py", ".sh"))]
    if "-m" in words[:-1]:
        module = _find(words[words.index("-m") + 1].split("."), [root.resolve()])
        files += [module] if module else []
    return [file.resolve() for file in files if file.is_file()]


def own_code(first: Sequence[Path], root: Path) -> tuple[Path, ...]:
    """Return the files that are an author's own: those in `first`, and what they import, in turn."""
    found: dict[Path, None] = {}
    pending = list(first)
    folders = [*dict.fromkeys(file.parent for file in first), root.resolve()]
    while pending:
        file = pending.pop()
        if file in found:
            continue
        found[file] = None
        pending += _imported(file, folders)
    return tuple(sorted(found))


def _imported(file: Path, folders: Sequence[Path]) -> list[Path]:
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, OSError, RecursionError):
        return []
    files: list[Path] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                files += _chain(alias.name.split("."), folders)
        elif isinstance(node, ast.ImportFrom):
            files += _from(node, file, folders)
    return files


def _from(node: ast.ImportFrom, file: Path, folders: Sequence[Path]) -> list[Path]:
    """Return the files of ``from x import y``: the module, and the names that are modules, too."""
    base = node.module.split(".") if node.module else []
    places = [file.parents[node.level - 1]] if 0 < node.level <= len(file.parents) else list(folders)
    files = _chain(base, places) if base else []
    for alias in node.names:
        files += _chain([*base, alias.name], places)
    return files


def _chain(parts: Sequence[str], folders: Sequence[Path]) -> list[Path]:
    """Return the files of ``a``, ``a.b``, ``a.b.c`` that exist: importing the last runs all of them."""
    return [found for count in range(1, len(parts) + 1) if (found := _find(parts[:count], folders)) is not None]


def _find(parts: Sequence[str], folders: Sequence[Path]) -> Path | None:
    for folder in folders:
        stem = folder.joinpath(*parts)
        for file in (stem.with_name(stem.name + ".py"), stem / "__init__.py"):
            if file.is_file() and not set(_LIBRARIES) & set(file.parts):
                return file.resolve()
    return None


def repository(folder: Path, files: Sequence[Path]) -> Repository:
    """Return what git says of the repository that `folder` lies in, and which of `files` it does not know."""
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return Repository(None, None, "", "the study lies in no git repository (or git is absent)")
    patch = _git(folder, "diff", "HEAD", "--no-ext-diff", "--no-textconv", "--no-color") or ""
    untracked = tuple(_untracked(folder, files))
    if len(patch) > _PATCH_LIMIT:
        return Repository(commit.strip(), True, "", f"the patch of {len(patch):,} characters was left out", untracked)
    return Repository(commit.strip(), bool(patch.strip()), patch, "", untracked)


def _untracked(folder: Path, files: Sequence[Path]) -> Iterator[str]:
    for file in files:
        if _git(folder, "ls-files", "--error-unmatch", "--", str(file)) is None:
            yield file.name


def _git(folder: Path, *arguments: str) -> str | None:
    # Of a repository, only what cannot run programs: no hooks, no pager, no file system monitor.
    safe = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-pager"]
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", *safe, "-C", str(folder), *arguments],
            capture_output=True,
            check=True,
            timeout=60,
            env=environment,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace")
