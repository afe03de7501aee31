"""What can be wrong with a composed workload: each fault by name, with the codes of findings that name it rightly."""

from __future__ import annotations

from dataclasses import dataclass

LOADER = "dataloader-bound"
PYTHON = "python-time"
LOOP = "frequent-operator"
COPIES = "needless-copies"
EXTRA = "unused-work"
GAPS = "step-gaps"


@dataclass(frozen=True)
class Mutation:
    """One fault: which codes name it, and what a workload must have for it.

    `codes` are all findings that a person would accept as this fault: time in the loader that is asleep in Python is
    both. `scaled` faults come in any size; the others are on or off.
    """

    name: str
    codes: tuple[str, ...]
    networks: tuple[str, ...] = ()  # empty: any
    loaders: tuple[str, ...] = ()
    scaled: bool = True


DATASET = ("dataset", "workers")
MAIN = ("dataset",)
BLOCKS = ("mlp", "deep", "transformer", "conv")
MUTATIONS: tuple[Mutation, ...] = (
    Mutation("sleep in the sample", (LOADER, PYTHON), loaders=DATASET),
    Mutation("sleep in collate", (LOADER, PYTHON, "slow-collate"), loaders=DATASET),
    Mutation("python in the sample", (LOADER, PYTHON), loaders=DATASET),
    Mutation("json in the sample", (LOADER, PYTHON), loaders=DATASET),
    Mutation("pickle in the sample", (LOADER, PYTHON), loaders=DATASET),
    Mutation("regex in the sample", (LOADER, PYTHON), loaders=DATASET),
    Mutation("file reads in the sample", (LOADER, PYTHON), loaders=DATASET),
    Mutation("small operators in the sample", (LOADER, "slow-samples", "slow-collate"), loaders=MAIN),
    Mutation("numpy in the sample", (LOADER, PYTHON), loaders=DATASET),
    Mutation("collate by pieces", (LOADER, "slow-collate"), loaders=MAIN),
    Mutation("collate through lists", (LOADER, PYTHON, "slow-collate"), loaders=MAIN),
    Mutation("stall every fourth batch", (LOADER, PYTHON), loaders=MAIN),
    Mutation("lock in the sample", (LOADER, PYTHON), loaders=MAIN),
    Mutation("clones of activations", (COPIES,)),
    Mutation("contiguous copies", (COPIES,)),
    Mutation("casts to and fro", (COPIES, "wrong-dtype")),
    Mutation("double precision", ("wrong-dtype",), networks=("mlp", "conv", "lstm", "deep"), scaled=False),
    Mutation("needless autocast", (COPIES, "wrong-dtype"), networks=("mlp", "deep"), scaled=False),
    Mutation("python between layers", (PYTHON, GAPS)),
    Mutation("sleep between layers", (PYTHON, GAPS)),
    Mutation("forward twice", (EXTRA,), scaled=False),
    Mutation("validation in each step", (EXTRA,), scaled=True),
    Mutation("loss sample by sample", (LOOP,), scaled=False),
    Mutation("head sample by sample", (LOOP,), networks=("mlp", "deep", "conv"), scaled=False),
    Mutation("mask row by row", (LOOP,)),
    Mutation("slow sort", ("dominant-operator", EXTRA)),
    Mutation("large scatter", ("dominant-operator", COPIES, EXTRA)),
    Mutation("checks for nan", ("unused-work", "synchronization", LOOP)),
    Mutation("anomaly detection", ("anomaly-detection",), scaled=False),
    Mutation("backward twice", ("repeated-backward", EXTRA), scaled=False),
    Mutation("recomputed forward", ("recomputation", EXTRA), networks=BLOCKS, scaled=False),
    Mutation("optimizer one by one", ("optimizer-bound",), networks=("deep", "transformer"), scaled=False),
    Mutation("dense embedding", ("optimizer-bound",), networks=("recommender",), scaled=False),
    Mutation("clip one by one", (LOOP, EXTRA), networks=("deep", "transformer", "mlp")),
    Mutation("average one by one", (LOOP, EXTRA), networks=("deep", "transformer", "mlp")),
    Mutation("penalty one by one", (LOOP, EXTRA), networks=("deep", "transformer", "mlp")),
    Mutation("histograms of weights", (EXTRA, "dominant-operator")),
    Mutation("norms read one by one", (LOOP, EXTRA, "synchronization")),
    Mutation("lists for the log", (PYTHON, GAPS)),
    Mutation("sleep in the log", (PYTHON, GAPS)),
    Mutation("checkpoint every few steps", (GAPS, PYTHON)),
    Mutation("validation every few steps", (GAPS, EXTRA)),
    Mutation("garbage collection", (PYTHON, GAPS)),
    Mutation("copy of the model", (COPIES, EXTRA, PYTHON)),
    Mutation("subprocess in each step", (PYTHON, GAPS), scaled=False),
    Mutation("socket in each step", (PYTHON, GAPS)),
    Mutation("hash of the batch", (PYTHON, GAPS)),
)
BY_NAME = {each.name: each for each in MUTATIONS}
