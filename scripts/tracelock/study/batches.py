"""Runs in batches: one job of a batch system makes many, so that ten thousand runs are not as many jobs in a queue.

A batch takes the plan's runs in the plan's order, of one environment. Where a whole round (one repeat of every variant)
fits, a batch holds whole rounds only: the variants that are compared then share their node and its state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracelock.study.plan import Run


@dataclass(frozen=True)
class Batch:
    """Runs that one job makes, one after the other; `name` counts the batches of an environment: ``003``."""

    environment: str
    name: str
    runs: tuple[Run, ...]

    @property
    def orders(self) -> str:
        """Return the first and the last place of its runs in the plan's order, as `run_batch.py` takes them."""
        return f"{self.runs[0].order}-{self.runs[-1].order}"


def cut(runs: Sequence[Run], runs_per_job: int) -> tuple[Batch, ...]:
    """Return the batches of a plan's runs, none longer than `runs_per_job`."""
    batches: list[Batch] = []
    for environment in dict.fromkeys(run.environment for run in runs):
        own = sorted((run for run in runs if run.environment == environment), key=lambda run: run.order)
        pieces = _pieces(own, runs_per_job)
        batches += [Batch(environment, f"{number:03}", piece) for number, piece in enumerate(pieces, 1)]
    return tuple(batches)


def _pieces(runs: Sequence[Run], most: int) -> list[tuple[Run, ...]]:
    rounds: dict[int, list[Run]] = {}
    for run in runs:
        rounds.setdefault(run.repeat, []).append(run)
    if max(map(len, rounds.values())) > most:
        return [tuple(runs[start : start + most]) for start in range(0, len(runs), most)]
    pieces: list[list[Run]] = [[]]
    for one in rounds.values():
        if pieces[-1] and len(pieces[-1]) + len(one) > most:
            pieces.append([])
        pieces[-1] += one
    return [tuple(piece) for piece in pieces]
