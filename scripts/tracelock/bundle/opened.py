"""An archive that was unpacked and checked, and what it says of itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from tracelock.bundle.pack import DOCUMENT, KIND
from tracelock.bundle.unpack import unpack
from tracelock.errors import Problem, TracelockError
from tracelock.io import read_json
from tracelock.study import comparison as comparison_document
from tracelock.study.comparison import Comparison
from tracelock.study.records import read_plan

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")


@dataclass(frozen=True)
class CodeFile:
    """A file of the workload's own code."""

    file: str
    sha256: str
    as_it_ran: bool = True


@dataclass(frozen=True)
class Maker:
    """The tracelock that packed an archive."""

    version: str
    source: str


@dataclass(frozen=True)
class BundleFile:
    """``tracelock/bundle/1``, as far as it is read."""

    study: str
    study_file: str | None
    tracelock: Maker
    plan: str
    code: list[CodeFile] = field(default_factory=list)
    environments: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    tables: str = "unknown"  # whether its packer would make the same bytes: same, other, unknown
    left_out: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Opened:
    """An archive below `folder`. `results` is its results folder."""

    folder: Path
    document: BundleFile
    comparison: Comparison
    names: tuple[str, ...]

    @property
    def results(self) -> Path:
        """The results of the original study."""
        return self.folder / "results"


def open_bundle(archive: Path, folder: Path) -> Opened:
    """Unpack an archive into `folder` and read what it says.

    Raises
    ------
    TracelockError
        If the archive is not sound, or was made by a later version.
    """
    if not archive.is_file():
        raise TracelockError(Problem(str(archive), "there is no such archive", "tracelock bundle STUDY makes one"))
    names = unpack(archive, folder)
    try:
        document = msgspec.convert(read_json(folder / DOCUMENT, KIND), BundleFile)
    except msgspec.ValidationError as error:
        raise TracelockError(Problem(f"{archive}: {DOCUMENT}", str(error))) from None
    wrong = [
        Problem(f"{archive}: {DOCUMENT}", f"names {name!r}, which is not in the archive")
        for name in ([document.study_file] if document.study_file else []) + [entry.file for entry in document.code]
        if name not in names
    ]
    if not _NAME.fullmatch(document.study):
        wrong.append(Problem(f"{archive}: {DOCUMENT}", f"calls the study {document.study!r}, which is no name of one"))
    if wrong:
        raise TracelockError(wrong)
    read_plan(folder / "results")
    found = comparison_document.read(folder / "results" / "comparison.json")
    return Opened(folder, document, found, tuple(names))


def what_would_run(opened: Opened) -> list[str]:
    """Return lines that tell a person what code a reproduction would run, before any of it runs."""
    lines = [f"workload: {opened.comparison.workload}"]
    for entry in opened.document.code:
        path = opened.folder / entry.file
        text = path.read_text(encoding="utf-8", errors="replace")
        note = "" if entry.as_it_ran else "; a name or secret in it was replaced when it was packed"
        lines.append(
            f"{entry.file}: {len(text.splitlines())} lines, imports {', '.join(_imports(text)) or 'nothing'}{note}"
        )
    if not opened.document.code:
        lines.append("no code of its own: the workload comes with tracelock or with an installed package")
    return lines


def _imports(text: str) -> Sequence[str]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ["(not readable as Python)"]
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return sorted(found)
