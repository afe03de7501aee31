"""Results of an older tracelock: what version each document has, and what this one makes of the same records.

Records (what was measured) are never rewritten: every version that was ever written is read. What follows from them
(comparison, tables, figures, report) is made anew.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tracelock.bundle.again import DERIVED, derived_files, remake, same_numbers
from tracelock.errors import Problem, TracelockError
from tracelock.study import comparison as comparison_document
from tracelock.study.records import read_plan
from tracelock.study.stats import MIN_EFFECT

_SCHEMA = re.compile(r"tracelock/([a-z-]+)/(\d{1,4})")
# Every kind of document below results/<study>, and the versions that are read; the last is the one that is written.
VERSIONS: Final[dict[str, tuple[int, ...]]] = {
    "analysis": (1,),
    "comparison": (1,),
    "envcheck": (1,),
    "machine": (1,),
    "no-analysis": (1,),
    "packages": (1,),
    "plan": (1,),
    "remedies": (1,),
    "reproduction": (1,),
    "round": (1,),
    "run": (1,),
    "spec": (1,),
}


@dataclass(frozen=True)
class Change:
    """A file that this tracelock makes in another way. `what` says how it differs."""

    file: str
    what: str


@dataclass(frozen=True)
class Upgrade:
    """What came of it: documents by kind and version, and the files that changed."""

    documents: dict[str, int]
    changes: tuple[Change, ...]


def upgrade(folder: Path, write: bool, say: Callable[[str], None]) -> Upgrade:
    """Say what this tracelock makes of the results in `folder`, and put it there if `write`.

    Raises
    ------
    TracelockError
        If a document is of a later version, or the records cannot be read; nothing has been changed then.
    """
    read_plan(folder)
    documents = _documents(folder)
    with tempfile.TemporaryDirectory(prefix=".upgrade-", dir=folder.resolve().parent) as temporary:
        fresh = Path(temporary) / folder.resolve().name
        remake(folder, fresh, _min_effect(folder), say)
        changes = tuple(_changes(folder, fresh))
        if write and changes:
            _put(fresh, folder)
    return Upgrade(documents, changes)


def _documents(folder: Path) -> dict[str, int]:
    """Return how many documents of each schema there are.

    Raises
    ------
    TracelockError
        With every document that a later tracelock wrote.
    """
    found: dict[str, int] = {}
    later: list[Problem] = []
    for path in sorted(folder.rglob("*.json")):
        schema = _schema_of(path)
        match = _SCHEMA.fullmatch(schema) if schema else None
        if schema is None or match is None:
            continue
        # A kind that is not here is read by nobody who compares.
        known = VERSIONS.get(match[1])
        if known and int(match[2]) > max(known):
            what = f"is {schema}, which this tracelock does not know"
            later.append(Problem(str(path), what, "it was written by a later one: update tracelock"))
        found[schema] = found.get(schema, 0) + 1
    if later:
        raise TracelockError(later)
    return dict(sorted(found.items()))


def _schema_of(path: Path) -> str | None:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise TracelockError(Problem(str(path), f"cannot be read as JSON: {error}")) from None
    schema = value.get("schema") if isinstance(value, dict) else None
    return schema if isinstance(schema, str) else None


def _min_effect(folder: Path) -> float:
    """Return the smallest difference that counted when the comparison was made."""
    path = folder / "comparison.json"
    try:
        return comparison_document.read(path).method.min_effect if path.is_file() else MIN_EFFECT
    except TracelockError:
        return MIN_EFFECT


def _changes(folder: Path, fresh: Path) -> Iterator[Change]:
    for name in sorted(derived_files(folder) | derived_files(fresh)):
        old, new = folder / name, fresh / name
        if not old.is_file():
            yield Change(name, "is new")
        elif not new.is_file():
            yield Change(name, "is no longer made")
        elif old.read_bytes() != new.read_bytes():
            yield Change(name, _difference(old, new))


def _difference(old: Path, new: Path) -> str:
    if old.suffix == ".csv":
        return _columns(old, new)
    if old.suffix == ".json":
        keys = [set(_keys(json.loads(path.read_bytes()))) for path in (old, new)]
        gone, come = sorted(keys[0] - keys[1]), sorted(keys[1] - keys[0])
        parts = [f"{word} {', '.join(names[:6])}" for word, names in (("gains", come), ("loses", gone)) if names]
        return "; ".join(parts) or "holds other values"
    return "is drawn anew"


def _columns(old: Path, new: Path) -> str:
    heads = [next(csv.reader(path.read_text(encoding="utf-8").splitlines()), []) for path in (old, new)]
    come, gone = ([n for n in heads[a] if n not in heads[1 - a]] for a in (1, 0))
    parts = [f"gains the columns {', '.join(come)}"] if come else []
    parts += [f"loses the columns {', '.join(gone)}"] if gone else []
    parts += [] if same_numbers(old, new) else ["holds other numbers"]
    return "; ".join(parts) or "holds the same numbers, written in another way"


def _keys(value: Any, path: str = "") -> Iterator[str]:
    """Yield the key paths of a document, members of lists under one name."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{path}.{key}".lstrip(".")
            yield from _keys(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _keys(inner, f"{path}[]")


def _put(fresh: Path, folder: Path) -> None:
    """Put what was made into the results, the comparison last: a folder that holds it holds whole tables."""
    for name in (*(name for name in DERIVED if name != "comparison.json"), "comparison.json"):
        source, target = fresh / name, folder / name
        if not source.exists():
            continue
        if target.is_dir():
            shutil.rmtree(target)
        source.replace(target)
