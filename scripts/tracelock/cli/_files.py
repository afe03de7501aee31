"""What ``tracelock analyze -o DIR`` writes: the documents, and tables as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from tracelock.analysis import document
from tracelock.analysis.ranks import Ranks
from tracelock.diagnosis import Diagnosed, Finding
from tracelock.errors import Problem, TracelockError
from tracelock.io import schema, stable_json, write_json, write_text


def prepare_folder(folder: Path) -> None:
    """Make `folder`, so that a mistake shows before the analysis."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TracelockError(Problem(str(folder), f"cannot be made: {error.strerror}", "-o takes a folder")) from None


def place_of(folder: Path, file: str, taken: set[Path]) -> Path:
    """Return a folder of its own in `folder` for one of several traces, named like its file."""
    stem = Path(file).name
    for suffix in (".gz", ".zip", ".json", ".trace", ".pt"):
        stem = stem.removesuffix(suffix)
    place, number = folder / (stem or "trace"), 2
    while place in taken:
        place, number = folder / f"{stem}-{number}", number + 1
    taken.add(place)
    return place


def write_analysis(folder: Path, found: Diagnosed) -> None:
    """Write analysis.json and a CSV for each table that has rows."""
    document.write(folder / "analysis.json", found)
    for name, rows in _tables(found).items():
        if rows:
            write_text(folder / f"{name}.csv", to_csv(rows))


def write_ranks(folder: Path, ranks: Ranks) -> None:
    """Write ranks.json, and its ranks and collectives as CSV."""
    write_json(folder / "ranks.json", {"schema": schema("ranks"), **msgspec.to_builtins(ranks)})
    write_text(folder / "ranks.csv", to_csv([asdict(each) for each in ranks.ranks]))
    write_text(folder / "collectives.csv", to_csv([asdict(each) for each in ranks.collectives]))


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return `rows` with the keys of the first as header; what is not known is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _tables(found: Diagnosed) -> dict[str, list[dict[str, Any]]]:
    return {
        "steps": [_flat(each) for each in found.steps],
        "gpus": [_flat(each) for each in found.gpus],
        "operators": [_flat(each) for each in found.operators],
        "labels": [_flat(each) for each in found.labels],
        "kernels": [_flat(each) for each in found.kernels],
        "transfers": [_flat(each) for each in found.transfers],
        "memory": [{"device": each.device, **_flat(point)} for each in found.memory for point in each.curve],
        "allocations": [{"device": each.device, **_flat(owner)} for each in found.memory for owner in each.owners],
        "loading": [] if found.loading is None else [_flat(each) for each in found.loading.waits],
        "threads": [] if found.threads is None else [_flat(each) for each in found.threads.items],
        "collectives": [{"device": part.device, **_flat(each)} for part in found.collectives for each in part.items],
        "findings": [_finding(each) for each in found.findings],
        "warnings": [_flat(each) for each in found.trace.warnings],
    }


def _finding(each: Finding) -> dict[str, Any]:
    changes = [remedy.code or stable_json(remedy.settings).replace("\n", "") for remedy in each.remedies]
    evidence = "; ".join(fact.text for fact in each.evidence)
    return {**_flat(each), "evidence": evidence, "remedies": "; ".join(changes)}


def _flat(row: Any) -> dict[str, Any]:
    """Return a dataclass as columns: parts of a part as ``part.name``, lists left out."""
    return dict(_columns(asdict(row), ""))


def _columns(values: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _columns(value, f"{prefix}{name}.")
        elif not isinstance(value, list | tuple):
            yield f"{prefix}{name}", value
