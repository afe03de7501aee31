"""Tables and figures once more from the stored records: the same, byte for byte, or which are not and why."""

from __future__ import annotations

import csv
import math
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tracelock.bundle.choose import made_by
from tracelock.bundle.opened import Opened
from tracelock.envs.diff import compare_manifests
from tracelock.envs.installed import read_installed
from tracelock.envs.manifest import Manifest, read_snapshot
from tracelock.errors import TracelockError
from tracelock.io import write_json
from tracelock.report.figures import write_figures
from tracelock.report.html import write_report
from tracelock.study import comparison as comparison_document
from tracelock.study.compare import compare
from tracelock.study.remedies import remedies_document
from tracelock.study.tables import write_tables

DERIVED = ("comparison.json", "remedies.json", "report.html", "tables", "figures")
_TOLERANCE = 1e-9  # of numbers that two versions of numpy or scipy may round in another way
_MATTER = ("numpy", "scipy", "matplotlib", "jinja2", "markupsafe", "msgspec")


@dataclass(frozen=True)
class Again:
    """What came of it.

    Parameters
    ----------
    same, other
        Files with the same bytes; files that differ or that only one side has.
    numbers
        Whether all numbers of all tables agree to one part in 10⁹.
    reasons
        What may explain the differences.
    """

    folder: Path
    same: tuple[str, ...]
    other: tuple[str, ...]
    numbers: bool
    reasons: tuple[str, ...]


def analyse_again(opened: Opened, folder: Path, say: Callable[[str], None]) -> Again:
    """Make comparison, tables, figures and report anew from the records of an archive, in the new folder `folder`."""
    original = opened.results
    remake(original, folder, opened.comparison.method.min_effect, say)
    names = sorted(derived_files(original) | derived_files(folder))
    same = tuple(name for name in names if _equal(original / name, folder / name))
    other = tuple(name for name in names if name not in same)
    tables = [name for name in other if name.endswith(".csv")]
    numbers = all(same_numbers(original / name, folder / name) for name in tables)
    return Again(folder, same, other, numbers, tuple(_reasons(opened)) if other else ())


def remake(original: Path, folder: Path, min_effect: float, say: Callable[[str], None]) -> None:
    """Copy the records of the results in `original` to the new folder `folder` and make there what follows from them.

    Figures and report are made where the original has them; nothing of `original` changes.
    """
    shutil.copytree(original, folder, ignore=_not_derived(original))
    say("comparing the runs")
    if (original / "remedies.json").is_file():
        rounds = sum(path.is_dir() for path in (original / "rounds").glob("*"))
        write_json(folder / "remedies.json", remedies_document(folder, rounds))
    found = compare(folder, min_effect)
    write_tables(found, folder / "tables")
    comparison_document.write(folder / "comparison.json", found)
    say("drawing the figures")
    if (original / "figures").is_dir():
        write_figures(found, folder / "figures")
    if (original / "report.html").is_file():
        write_report(folder, folder / "report.html")


def _not_derived(original: Path) -> Callable[[str, list[str]], set[str]]:
    def ignored(folder: str, names: list[str]) -> set[str]:
        return set(DERIVED) & set(names) if Path(folder) == original else set()

    return ignored


def derived_files(folder: Path) -> set[str]:
    """Return the names of the files in `folder` that follow from records."""
    found: set[str] = set()
    for name in DERIVED:
        place = folder / name
        files = place.rglob("*") if place.is_dir() else [place]
        # Snakemake leaves a hidden mark in a folder that a rule made.
        shown = (path for path in files if path.is_file() and not path.name.startswith("."))
        found |= {path.relative_to(folder).as_posix() for path in shown}
    return found


def _equal(one: Path, other: Path) -> bool:
    return one.is_file() and other.is_file() and one.read_bytes() == other.read_bytes()


def same_numbers(one: Path, other: Path) -> bool:
    """Return whether two tables agree in all columns that both have, numbers to one part in 10⁹."""
    if not (one.is_file() and other.is_file()):
        return False
    rows = [list(csv.DictReader(path.read_text(encoding="utf-8").splitlines())) for path in (one, other)]
    if len(rows[0]) != len(rows[1]):
        return False
    # A later version may have further columns; those that both have must agree.
    pairs = ((a[k], b[k]) for a, b in zip(*rows, strict=True) for k in a.keys() & b.keys())
    return all(_close(*pair) for pair in pairs)


def _close(one: str, other: str) -> bool:
    try:
        return one == other or math.isclose(float(one), float(other), rel_tol=_TOLERANCE)
    except ValueError:
        return False


def _reasons(opened: Opened) -> Iterator[str]:
    """Yield what differs between the makers of both: tracelock itself, then the packages that compute and draw."""
    if opened.document.tables == "other":
        yield "the tables were older than the tracelock that packed them"
    here = made_by()
    there = opened.document.tracelock
    if here["source"] != there.source:
        now = f"{here['version']} (source {here['source']})"
        yield f"tracelock {there.version} (source {there.source}) made the archive; this is {now}"
    for name in opened.document.environments[:1]:
        try:
            snapshot = read_snapshot(opened.results / "envs" / name / "packages.json")
        except TracelockError:
            return
        installed = read_installed(Path(sys.prefix))
        present = Manifest("prefix", "here", installed.packages, installed.python)
        for change in compare_manifests(snapshot, present):
            if change.name in (*_MATTER, "python"):
                yield f"{change.name}: {change.before or 'absent'} there, {change.after or 'absent'} here"
