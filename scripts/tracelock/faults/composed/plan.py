"""Draw a composed workload by its seed: network, loader, optimizer, logging, how it is recorded, and what is wrong."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

from tracelock.faults.composed.mutations import MUTATIONS, Mutation
from tracelock.faults.simulator.chance import seeded

NETWORKS = ("mlp", "deep", "conv", "transformer", "lstm", "recommender")
LOADERS = ("dataset", "dataset", "cached", "workers", "generator")
SMALLEST, LARGEST = 0.04, 2.0  # of the step without faults
HEALTHY = 0.2  # of the cases have no fault


@dataclass(frozen=True)
class Plan:
    """One case before it runs; `faults` are names and sizes (a fault's time as a part of the healthy step)."""

    seed: int
    network: str
    width: int
    depth: int
    batch: int
    loader: str
    optimizer: str
    logs: bool
    labels: bool
    shapes: bool
    stacks: bool
    memory: bool
    facts: bool
    faults: tuple[tuple[str, float], ...]


def draw(seed: int) -> Plan:
    """Return the case of a seed."""
    random = seeded("composed", seed)
    network, loader = random.choice(NETWORKS), random.choice(LOADERS)
    width, depth, batch = _size(random, network)
    count = 0 if random.random() < HEALTHY else random.choice((1, 1, 2, 2, 3))
    possible = [each for each in MUTATIONS if _fits(each, network, loader)]
    chosen = random.sample(possible, count)
    if sum(each.name in _ALONE for each in chosen) > 1:  # each of these changes what a backward pass is
        chosen = [each for each in chosen if each.name not in _ALONE] or chosen[:1]
    return Plan(
        seed=seed,
        network=network,
        width=width,
        depth=depth,
        batch=batch,
        loader=loader,
        optimizer=random.choice(("sgd", "momentum", "adam", "adamw-fused")),
        logs=random.random() < 0.5,
        labels=random.random() < 0.4,
        shapes=random.random() < 0.7,
        stacks=random.random() < 0.4,
        memory=random.random() < 0.3,
        facts=random.random() < 0.6,
        faults=tuple((each.name, _log_uniform(random, SMALLEST, LARGEST)) for each in chosen),
    )


_ALONE = ("backward twice", "recomputed forward", "anomaly detection", "needless autocast", "double precision")


def _fits(mutation: Mutation, network: str, loader: str) -> bool:
    fits_network = not mutation.networks or network in mutation.networks
    return fits_network and (not mutation.loaders or loader in mutation.loaders)


def _size(random: Random, network: str) -> tuple[int, int, int]:
    """Return width, depth and batch: a step of 3 to 40 ms on one core."""
    sizes = {
        "mlp": ((256, 512, 768), (2, 3, 5), (32, 64, 128)),
        "deep": ((48, 64, 96), (30, 60), (32, 64)),
        "conv": ((8, 16, 24), (2, 3), (16, 32)),
        "transformer": ((64, 96, 128), (1, 2, 3), (8, 16)),
        "lstm": ((64, 128), (1, 2), (16, 32)),
        "recommender": ((16, 32), (2, 3), (64, 128)),
    }[network]
    width, depth, batch = (random.choice(each) for each in sizes)
    return width, depth, batch


def _log_uniform(random: Random, low: float, high: float) -> float:
    return math.exp(random.uniform(math.log(low), math.log(high)))
