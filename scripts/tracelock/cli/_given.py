"""The files that a command line gives: patterns of a shell that were quoted, and ``-`` for standard input."""

from __future__ import annotations

import glob
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tracelock.errors import Problem, TracelockError
from tracelock.trace.source import address_of

_STDIN = "stdin"


def expanded(paths: Sequence[Path]) -> list[Path]:
    """Return `paths` with the files that a pattern stands for in its place (``**``: any folders).

    Numbers in names are ordered by their value, so that rank 10 comes after rank 9. A path that is there is none.

    Raises
    ------
    TracelockError
        If nothing matches a pattern.
    """
    found: list[Path] = []
    for path in paths:
        text = str(path)
        if not glob.has_magic(text) or path.exists() or address_of(path):
            found.append(path)
            continue
        matches = sorted((Path(each) for each in glob.iglob(text, recursive=True)), key=_natural)  # noqa: PTH207  absolute ones, too
        if not matches:
            raise TracelockError(Problem(text, "no file has such a name", f"ls {path.parent} shows what is there"))
        found += matches
    return found


def _natural(path: Path) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", str(path))]


@contextmanager
def given_file(path: Path) -> Iterator[tuple[Path, str]]:
    """Yield a file that can be read more than once, and what to call it; ``-`` is what comes through standard input.

    Raises
    ------
    TracelockError
        If nothing comes, or it cannot be kept for as long as it is read; of ours in the block, under that name.
    """
    if str(path) != "-":
        yield path, str(path)
        return
    if sys.stdin.isatty():
        raise TracelockError(Problem(_STDIN, "is a terminal, expected a trace", "zstdcat trace.json.zst | … analyze -"))
    with tempfile.TemporaryDirectory(prefix="tracelock-") as folder:
        file = Path(folder, "trace")
        try:
            with file.open("wb") as stream:
                shutil.copyfileobj(sys.stdin.buffer, stream, 1 << 20)
        except OSError as error:
            hint = f"it is kept in {folder}; set TMPDIR to a folder with more room"
            raise TracelockError(Problem(_STDIN, f"cannot be read: {error.strerror}", hint)) from None
        try:
            yield file, _STDIN
        except TracelockError as error:
            named = [replace(each, where=each.where.replace(str(file), _STDIN)) for each in error.problems]
            raise TracelockError(named, error.exit_code) from None
