"""The work of ``tracelock clean``: what may go, as a list; with consent it goes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from tracelock.cli._grid import grid
from tracelock.cli._quiet import quiet
from tracelock.cli._show import _section
from tracelock.errors import Problem, TracelockError, nearest
from tracelock.io import schema, stable_json
from tracelock.report.text import plural, size
from tracelock.study.room import KINDS, Room, room_of, room_of_cache, studies_in
from tracelock.trace.cache import folder_of


def run(folders: Sequence[Path], only: str | None, *, yes: bool, json: bool) -> None:
    """List, or take away, what `folders` hold that may go."""
    kinds = list(KINDS) if only is None else _kinds(only)
    studies = dict.fromkeys(study for folder in folders for study in studies_in(folder))
    found = [room for study in studies for room in room_of(study, kinds)]
    found.sort(key=lambda room: list(KINDS).index(room.kind))
    found += room_of_cache(folder_of()) if "cache" in kinds else []
    freed = sum(room.free() for room in found) if yes else None
    if json:
        rows = [{"place": str(r.place), "kind": r.kind, "files": len(r.files), "bytes": r.size} for r in found]
        sys.stdout.write(stable_json({"schema": schema("clean"), "found": rows, "freed_bytes": freed}))
        return
    if not quiet() and found:
        _show(found)
    whole = sum(room.size for room in found)
    if not found:
        print("Nothing that could go.")
    elif freed is None:
        print(f"{_plain(whole)} could be freed; --yes does it. Records, tables, reports stay.")
    else:
        print(f"{_plain(freed)} freed. Records, tables, reports are kept.")


def _show(found: Sequence[Room]) -> None:
    console = Console(highlight=False, markup=False, emoji=False)
    rows = [(room.kind, plural(len(room.files), "file"), _plain(room.size), str(room.place)) for room in found]
    _section(console, "What may go", grid(("kind", "", "room", "where"), rows, folded=(3,)))
    for kind in dict.fromkeys(room.kind for room in found):
        console.print(f"{kind}: {KINDS[kind]}")


def _plain(value: int) -> str:
    return size(value).replace("\N{NO-BREAK SPACE}", " ")


def _kinds(text: str) -> list[str]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in KINDS:
            what = f"'{word}' is none of {', '.join(KINDS)}"
            raise TracelockError(Problem("--only", what, nearest(word, tuple(KINDS))))
    return words
