"""How often intervals hold what they should, and how often equal variants are called different: simulated studies.

    python -m bench.coverage --studies 2000        (in tests/, with scripts/ on PYTHONPATH)

A study has a baseline and three variants of equal speed, measured interleaved. Each world has one trouble:

- ``quiet``: runs differ by 2 %, steps by 5 % (standard deviations of logarithms);
- ``drift``: besides, the machine gets 10 % slower from the first run to the last;
- ``heavy tails``: one run in ten takes 10 to 50 % longer, and steps are Student's t with three degrees of freedom;
- ``correlated``: each step resembles the one before (autoregressive, 0.8);
- ``all``: everything at once.

The truth of an interval of a median is the median of the world itself; that of a ratio is 1.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

import numpy as np

from tracelock.study import stats, verdicts
from tracelock.study.stats import Sample
from tracelock.study.verdicts import adjusted, difference

WORLDS = ("quiet", "drift", "heavy tails", "correlated", "all")
VARIANTS = 4
STEPS = 20


@dataclass(frozen=True)
class Outcome:
    """Shares over the studies of one world with one number of runs."""

    world: str
    runs: int
    studies: int
    median_covered: float
    ratio_covered: float
    any_alarm: float  # studies that call any of their equal variants faster or slower


def simulate(world: str, runs: int, studies: int, seed: int) -> Outcome:
    """Return how `studies` studies of one world came out."""
    chance = np.random.default_rng([seed, WORLDS.index(world), runs])
    truth = float(np.median([_run(chance, world, place).value for place in chance.random(4000)]))
    medians = ratios = alarms = 0
    for _ in range(studies):
        cases = _study(chance, world, runs)
        found = stats.median_interval(cases[0], chance)
        medians += found.low <= truth <= found.high
        compared = adjusted([difference(case, cases[0], chance) for case in cases[1:]])
        ratios += compared[0].ratio.low <= 1 <= compared[0].ratio.high
        alarms += any(one.verdict in ("faster", "slower") for one in compared)
    return Outcome(world, runs, studies, medians / studies, ratios / studies, alarms / studies)


def _study(chance: np.random.Generator, world: str, runs: int) -> list[list[Sample]]:
    cases: list[list[Sample]] = [[] for _ in range(VARIANTS)]
    for repeat in range(runs):
        for position, variant in enumerate(chance.permutation(VARIANTS)):
            cases[variant].append(_run(chance, world, (repeat * VARIANTS + position) / (runs * VARIANTS - 1)))
    return cases


def _run(chance: np.random.Generator, world: str, place: float) -> Sample:
    level = 100 * math.exp(chance.normal(0, 0.02))
    if world in ("drift", "all"):
        level *= 1 + 0.1 * place
    if world in ("heavy tails", "all") and chance.random() < 0.1:
        level *= chance.uniform(1.1, 1.5)
    heavy = world in ("heavy tails", "all")
    noise = chance.standard_t(3, STEPS) / math.sqrt(3) if heavy else chance.normal(0, 1, STEPS)
    if world in ("correlated", "all"):
        for step in range(1, STEPS):
            noise[step] = 0.8 * noise[step - 1] + 0.6 * noise[step]
    steps = level * np.exp(np.clip(0.05 * noise, -1, 1))
    return Sample(float(steps.mean()), tuple(steps))


def main() -> None:
    """Print a table of all worlds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--runs", type=int, nargs="+", default=[2, 3, 6])
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    stats.RESAMPLES, stats._WITHIN = 999, 200
    verdicts.permutation_p = lambda *_: 1.0  # is shown, and decides nothing
    print(
        "| world | runs | interval holds the median | interval holds the ratio | any equal variant called different |"
    )
    print("| --- | --- | --- | --- | --- |", flush=True)
    for world in WORLDS:
        for runs in given.runs:
            one = simulate(world, runs, given.studies, given.seed)
            shares = (one.median_covered, one.ratio_covered, one.any_alarm)
            print(f"| {world} | {runs} | {' | '.join(f'{100 * share:.1f} %' for share in shares)} |", flush=True)


if __name__ == "__main__":
    main()
