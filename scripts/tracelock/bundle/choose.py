"""Which files of a study go into its archive, and what is left out and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import tracelock
from tracelock.bundle.origin import Origin, lock_files
from tracelock.errors import TracelockError
from tracelock.io import file_digest, read_json
from tracelock.study.place import ROOT

Traces: TypeAlias = Literal["none", "main", "all"]
TRACE_ENDINGS = (".json.gz",)
_SKIPPED_FOLDERS = ("logs",)
_SKIPPED_FILES = ("prefix.txt",)
_LARGE_DATA = 8 << 30  # bytes of data that are hashed; more is told by its size alone


@dataclass(frozen=True)
class LeftOut:
    """A file of the study that is not in the archive, told by name, size (bytes) and SHA-256."""

    name: str
    bytes: int
    sha256: str | None
    why: str


@dataclass(frozen=True)
class Choice:
    """What is written: name in the archive -> file; and what is not."""

    files: Mapping[str, Path]
    traces: frozenset[str]  # names in `files`
    left_out: tuple[LeftOut, ...]


def choose(origin: Origin, policy: Traces) -> Choice:
    """Return the files of the archive of a study."""
    files: dict[str, Path] = {}
    traces: set[str] = set()
    left: list[LeftOut] = []
    main = _main_runs(origin.results) if policy == "main" else None
    for path in _below(origin.results):
        name = f"results/{path.relative_to(origin.results).as_posix()}"
        trace = path.name.endswith(TRACE_ENDINGS)
        if trace and (policy == "none" or (main is not None and path.parent not in main)):
            left.append(LeftOut(name, path.stat().st_size, file_digest(path), f"--traces {policy}"))
            continue
        files[name] = path
        traces |= {name} if trace else set()
    for path in [*origin.code, *([origin.file] if origin.file else []), *origin.extras()]:
        files[study_name(origin, path)] = path
    files |= lock_files(origin.results, list(origin.plan["environments"]))
    files |= {path.relative_to(ROOT).as_posix(): path for path in _workflow()}
    return Choice(dict(sorted(files.items())), frozenset(traces), (*left, *_data(origin)))


def study_name(origin: Origin, path: Path) -> str:
    """Return the name in the archive of a file of the study itself."""
    return f"study/{path.resolve().relative_to(origin.root).as_posix()}"


def _below(folder: Path) -> Iterator[Path]:
    """Yield the files of a results folder that are results: no logs of the workflow, no half-made run, no links."""
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        hidden = any(part.startswith(".") for part in parts)
        if path.is_symlink() or not path.is_file() or hidden or parts[0] in _SKIPPED_FOLDERS:
            continue
        if parts[-1] not in _SKIPPED_FILES:
            yield path


def _main_runs(folder: Path) -> frozenset[Path]:
    """Return the folder of the first run of each variant whose trace was analysed."""
    first: dict[Path, Path] = {}
    for path in sorted(folder.rglob("run.json"), key=lambda path: (path.parent.parent, _number(path.parent.name))):
        if _has_trace(path):
            first.setdefault(path.parent.parent, path.parent)
    return frozenset(first.values())


def _number(text: str) -> int:
    return int(text) if text.isdigit() else -1


def _has_trace(run: Path) -> bool:
    try:
        return bool((read_json(run, "run").get("profiled") or {}).get("trace"))
    except TracelockError:
        return False


def _workflow() -> list[Path]:
    """Return the files of the workflow: they say how the results were made, to people without tracelock, too."""
    return [*sorted((ROOT / "workflow").rglob("*.smk")), ROOT / "workflow" / "Snakefile"]


def _data(origin: Origin) -> Iterator[LeftOut]:
    """Yield the data that settings of the study name by a path: by reference, with size and hash."""
    values = {
        str(value)
        for variant in origin.plan["variants"]
        for value in variant["settings"].values()
        if isinstance(value, str) and ("/" in value or "." in value)
    }
    for value in sorted(values):
        path = Path(value)
        if path.is_file():
            size = path.stat().st_size
            yield LeftOut(value, size, file_digest(path) if size <= _LARGE_DATA else None, "data, by reference")
        elif path.is_dir():
            sizes = [file.stat().st_size for file in path.rglob("*") if file.is_file()]
            yield LeftOut(value, sum(sizes), None, f"data, by reference: a folder of {len(sizes)} files")


def made_by() -> dict[str, Any]:
    """Return the version of tracelock and the digest of its source."""
    from tracelock.study.layout import code_digest

    return {"version": tracelock.__version__, "source": code_digest("")}
