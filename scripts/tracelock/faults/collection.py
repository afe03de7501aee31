"""The whole collection: draw the cases of a range of seeds, ask the diagnosis and the peers, in several processes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tracelock.analysis.analyze import analyze
from tracelock.errors import Problem, TracelockError, nearest
from tracelock.faults.draw import draw_control, draw_fault
from tracelock.faults.families import FAMILIES, Family
from tracelock.faults.grade import RANK_FILE, Answer, answer_in
from tracelock.faults.peers import Advice, gpu_idle_advice, plugin_advice
from tracelock.trace import read_trace

# Seeds below belong to whoever changes rules or faults; the published figures come from seeds that nobody looked at.
FIRST_GRADING_SEED = 10_000
CONTROLS = 8  # healthy controls for each seed, so that a share of 2 % can be told from none


@dataclass(frozen=True)
class Asked:
    """One case to be drawn and asked: a family's name, or None for a healthy control."""

    family: str | None
    seed: int
    peers: bool = False
    gpu_idle: Path | None = None


@dataclass(frozen=True)
class Told:
    """What came of it."""

    answer: Answer
    advice: tuple[Advice, ...]


def parse_seeds(text: str) -> range:
    """Return the seeds of ``FIRST:LAST`` (LAST excluded) or of a single number.

    Raises
    ------
    TracelockError
        If it is something else, or empty.
    """
    first, colon, last = text.partition(":")
    if first.isdigit() and (last.isdigit() if colon else not last):
        seeds = range(int(first), int(last) if colon else int(first) + 1)
        if seeds:
            return seeds
    raise TracelockError(Problem("--seeds", f"is {text!r}, expected FIRST:LAST", "as in 10000:10010"))


def wanted(names: Sequence[str]) -> tuple[Family, ...]:
    """Return the families of `names`, all where none is given.

    Raises
    ------
    TracelockError
        Naming every unknown one.
    """
    known = {family.name: family for family in FAMILIES}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise TracelockError(
            [Problem("--family", f"{name!r} is no fault", nearest(name, list(known))) for name in unknown]
        )
    return tuple(known[name] for name in names) or FAMILIES


def cases(seeds: range, families: Sequence[Family], peers: bool, gpu_idle: Path | None) -> list[Asked]:
    """Return the cases of `seeds`: one of each family, and `CONTROLS` healthy ones, for each seed."""
    faulty = [Asked(family.name, seed, peers, gpu_idle) for family in families for seed in seeds]
    controls = range(seeds.start * CONTROLS, seeds.stop * CONTROLS)
    return faulty + [Asked(None, seed, peers, gpu_idle) for seed in controls]


def ask(asked: Asked) -> Told:
    """Draw one case and ask about it."""
    drawn = draw_control(asked.seed) if asked.family is None else draw_fault(wanted([asked.family])[0], asked.seed)
    with tempfile.TemporaryDirectory(prefix="tracelock-faults-") as name:
        folder = Path(name)
        told = answer_in(drawn, folder)
        advice: list[Advice] = []
        if asked.peers:
            trace = folder / RANK_FILE.format(0)
            advice.append(plugin_advice(analyze(read_trace(trace))))
            advice += [gpu_idle_advice(asked.gpu_idle, trace)] if asked.gpu_idle else []
    return Told(told, tuple(advice))


def ask_all(asked: Sequence[Asked], jobs: int) -> Iterator[Told]:
    """Yield what came of each case, in order, from `jobs` processes."""
    if jobs <= 1:
        yield from map(ask, asked)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(ask, asked, chunksize=2)
