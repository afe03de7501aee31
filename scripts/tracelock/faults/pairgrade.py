"""Give jobs with two faults to the diagnosis, in full and poorer recordings, and grade its answers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tracelock.diagnosis import Diagnosed
from tracelock.diagnosis.healthy import CODE
from tracelock.faults.grade import NEEDS_A_RUN, Recording, examined
from tracelock.faults.pairs import DrawnPair, draw_pair, pairs
from tracelock.faults.report import SLACK
from tracelock.faults.simulator.chance import seeded
from tracelock.faults.variants import PLAIN, POORER, Variant

Bound = tuple[str, float | None, float]  # code, bound, true cost


@dataclass(frozen=True)
class PairAnswer:
    """What the diagnosis said of one case."""

    family: str
    seed: int
    variant: str
    expected: tuple[str, str]  # the larger fault first
    costs: tuple[float, float]  # in that order
    together: float
    tied: bool  # they differ by no more than `SLACK`: either may lead
    found: tuple[str, ...]
    confidence: str  # of the main finding
    estimates: tuple[float | None, ...]
    bounds: tuple[Bound, ...]
    revealed: bool | None  # with the first fault healed, the second leads; None where that was not tried

    @property
    def right(self) -> bool:
        """Return whether the larger fault leads, or either of two that are as large."""
        return self.found[0] in (self.expected if self.tied else self.expected[:1])

    @property
    def silent(self) -> bool:
        """Return whether no cause was named."""
        return self.found[0] == CODE

    @property
    def second_named(self) -> bool:
        """Return whether both faults are among the findings."""
        return set(self.expected) <= set(self.found)

    @property
    def bound_held(self) -> bool | None:
        """Return whether each named fault's bound is no less than its true cost, less `SLACK`; None without any."""
        held = [bound >= cost - SLACK for _, bound, cost in self.bounds if bound is not None]
        return all(held) if held else None


def ask_pair(asked: tuple[int, int]) -> list[PairAnswer]:
    """Return the answers to one pair (by its place) and seed: plain, and in one poorer recording."""
    place, seed = asked
    families = tuple(pairs())[place]
    drawn = draw_pair(families, seed)
    if drawn is None:
        return []
    random = seeded("variant", place, seed)
    needs_a_run = any(family.code in NEEDS_A_RUN for family in families)
    poorer = random.choice([each for each in POORER if each.facts or not needs_a_run])
    return [answer_pair(drawn, PLAIN, with_first_healed=True), answer_pair(drawn, poorer)]


def ask_pairs(seeds: range, jobs: int) -> Iterator[list[PairAnswer]]:
    """Yield the answers to each pair of each seed, in order, from `jobs` processes."""
    asked = [(place, seed) for seed in seeds for place in range(len(tuple(pairs())))]
    if jobs <= 1:
        yield from (ask_pair(each) for each in asked)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(ask_pair, asked, chunksize=4)


def answer_pair(drawn: DrawnPair, variant: Variant, *, with_first_healed: bool = False) -> PairAnswer:
    """Return the answer to one case as it is recorded in one way."""
    order = (0, 1) if drawn.costs[0] >= drawn.costs[1] else (1, 0)
    codes = tuple(drawn.families[place].code for place in order)
    costs = tuple(drawn.costs[place] for place in order)
    told = _diagnose(drawn, variant, healed=None)
    found = {finding.code: finding for finding in told.findings}
    bounds = [
        (code, found[code].gain_at_most, cost)
        for code, cost in zip(codes, costs, strict=True)
        if code in found and cost >= SLACK
    ]
    return PairAnswer(
        family=drawn.name,
        seed=drawn.seed,
        variant=variant.name,
        expected=(codes[0], codes[1]),
        costs=(costs[0], costs[1]),
        together=drawn.together,
        tied=costs[0] - costs[1] <= SLACK,
        found=tuple(found),
        confidence=told.findings[0].confidence,
        estimates=tuple(finding.gain_estimate for finding in told.findings),
        bounds=tuple(bounds),
        revealed=_revealed(drawn, variant, order[0], codes[1]) if with_first_healed else None,
    )


def _revealed(drawn: DrawnPair, variant: Variant, first: int, second: str) -> bool:
    return _diagnose(drawn, variant, healed=first).findings[0].code == second


def _diagnose(drawn: DrawnPair, variant: Variant, healed: int | None) -> Diagnosed:
    """Return the diagnosis of the job with both faults, or of the one without the fault `healed`."""
    job = variant.of(drawn.job if healed is None else drawn.without[healed])
    together = any(family.ranks for family in drawn.families)
    with tempfile.TemporaryDirectory(prefix="tracelock-faults-") as name:
        recording = Recording(job, variant.recorded, variant.style, variant.facts, variant.spoil, together)
        return examined(recording, Path(name))


def grade_pairs(answers: Sequence[PairAnswer]) -> dict[str, float | None]:
    """Return the shares of plain recordings, and of confident verdicts in all recordings; None where no case tells."""
    plain = [each for each in answers if each.variant == PLAIN.name]
    sure = [each for each in answers if each.confidence == "high"]
    return {
        "main_cause_right": _share([each.right for each in plain]),
        "second_named": _share([each.second_named for each in plain]),
        "revealed": _share([each.revealed for each in plain if each.revealed is not None]),
        "bound_held": _share([held for each in answers if (held := each.bound_held) is not None]),
        "high_confidence_right": _share([each.right for each in sure]),
    }


def calibration(answers: Sequence[PairAnswer]) -> dict[str, dict[str, float | int | None]]:
    """Return for each confidence how many verdicts have it, and the share that is right."""
    return {
        level: {"cases": len(mine), "right": _share([each.right for each in mine])}
        for level in ("high", "medium", "low")
        for mine in ([each for each in answers if each.confidence == level],)
    }


def robustness(answers: Sequence[PairAnswer]) -> dict[str, dict[str, int]]:
    """Return for each recording how many cases are right, silent, wrong, and wrong with high confidence."""
    found: dict[str, dict[str, int]] = {}
    for each in answers:
        row = found.setdefault(each.variant, {"cases": 0, "right": 0, "silent": 0, "wrong": 0, "wrong_high": 0})
        verdict = "right" if each.right else "silent" if each.silent else "wrong"
        row["cases"] += 1
        row[verdict] += 1
        row["wrong_high"] += verdict != "right" and each.confidence == "high"
    return found


def _share(yes: Sequence[bool]) -> float | None:
    return sum(yes) / len(yes) if yes else None
