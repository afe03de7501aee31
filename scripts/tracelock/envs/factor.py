"""The environment as a factor of a study: what differs between two of them, what may explain a time first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tracelock.envs.diff import Change, compare_machines, compare_manifests
from tracelock.envs.manifest import read_snapshot
from tracelock.errors import TracelockError
from tracelock.io import read_json

# What a change of a package may do to a training job; the order is that of `tracelock.envs.package.speed_rank`.
EFFECTS = {
    "torch": "operators, kernels, compiler, data loader",
    "cuda": "kernels of the CUDA libraries, launches",
    "cudnn": "convolutions, attention, communication",
    "mkl": "matrix products on the processor",
    "openmp": "threads on the processor",
    "data": "reading, decoding and tokenising",
    "python": "everything in Python, arrays in the loader",
    "other": "seldom anything",
}


@dataclass(frozen=True)
class EnvironmentDifference:
    """What differs between an environment and the one that it is compared with.

    Parameters
    ----------
    changes
        Packages, in the order in which they may explain a difference in time; empty if they are the same.
    machine
        Facts in which the machines differ: (name, reference, this).
    unknown
        Why nothing can be said, or ``None``.
    """

    environment: str
    reference: str
    changes: tuple[Change, ...] = ()
    machine: tuple[tuple[str, str, str], ...] = ()
    unknown: str | None = None


def environment_differences(folder: Path, names: Sequence[str]) -> tuple[EnvironmentDifference, ...]:
    """Return each environment of a study against its first.

    Parameters
    ----------
    folder
        The study's results; snapshots lie in ``envs/<name>``.
    """
    return tuple(_difference(folder, names[0], name) for name in names[1:])


def _difference(folder: Path, reference: str, name: str) -> EnvironmentDifference:
    places = [folder / "envs" / each for each in (reference, name)]
    try:
        first, second = (read_snapshot(place / "packages.json") for place in places)
        machines = [read_json(place / "machine.json", "machine") for place in places]
    except TracelockError as error:
        return EnvironmentDifference(name, reference, unknown=str(error.problems[0].what))
    return EnvironmentDifference(
        environment=name,
        reference=reference,
        changes=compare_manifests(first, second),
        machine=tuple(compare_machines(machines[0], machines[1])),
    )


def change_rows(difference: EnvironmentDifference, most: int = 12) -> list[tuple[str, str, str, str]]:
    """Return rows (package, in the reference, in this, what it may do to the time), what matters first.

    Parameters
    ----------
    most
        Rows at most; a last one counts the rest.
    """
    # Build and hash alone seldom change what a program does.
    ordered = sorted(difference.changes, key=lambda change: change.what == "hash")
    rows = [(c.name, c.before or "–", c.after or "–", EFFECTS[c.tier]) for c in ordered[:most]]
    if rest := len(ordered) - len(rows):
        rows.append((f"and {rest} more", "", "", EFFECTS["other"] if _only_other(ordered[most:]) else ""))
    return rows


def _only_other(changes: Sequence[Change]) -> bool:
    return all(change.tier == "other" for change in changes)
