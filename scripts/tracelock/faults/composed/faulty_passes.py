"""Faults of the forward and the backward pass; imports torch."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from tracelock.faults.composed.faulty import Faulty, anything

if TYPE_CHECKING:
    from tracelock.faults.composed.job import Job


class Clones(Faulty):
    """Copies activations."""

    def between(self, values: torch.Tensor, stage: int) -> torch.Tensor:
        """Clone again and again."""
        for _ in range(self.times):
            values = values.clone()
        return values


class Contiguous(Faulty):
    """Turns activations there and back, each time as a copy."""

    def between(self, values: torch.Tensor, stage: int) -> torch.Tensor:
        """Transpose and make contiguous, twice."""
        if not values.is_floating_point():
            return values
        for _ in range(self.times):
            values = values.transpose(0, 1).contiguous().transpose(0, 1).contiguous()
        return values


class Casts(Faulty):
    """Casts activations to half precision and back."""

    def between(self, values: torch.Tensor, stage: int) -> torch.Tensor:
        """Cast."""
        if not values.is_floating_point():
            return values
        for _ in range(self.times):
            values = values.to(torch.bfloat16).to(torch.float32)
        return values


class PythonBetween(Faulty):
    """Computes in pure Python after each stage."""

    first = 200.0

    def between(self, values: torch.Tensor, stage: int) -> torch.Tensor:
        """Add numbers up."""
        total = 0
        for number in range(self.times):
            total += number * number % 7
        anything(total)
        return values


class SleepBetween(Faulty):
    """Waits after each stage."""

    first = 200.0

    def between(self, values: torch.Tensor, stage: int) -> torch.Tensor:
        """Wait."""
        time.sleep(self.count / 1e6)
        return values


class ForwardTwice(Faulty):
    """Runs the network once more and throws the result away."""

    def before(self, job: Job, values: torch.Tensor, labels: torch.Tensor) -> None:
        """Compute an accuracy nobody reads, with gradients switched on."""
        anything(job.plain(values).argmax(dim=1))


class ValidationAlways(Faulty):
    """Runs the network on validation batches in each step."""

    first = 1.0

    def before(self, job: Job, values: torch.Tensor, labels: torch.Tensor) -> None:
        """Validate."""
        with torch.no_grad():
            for _ in range(self.times):
                anything(job.plain(values).argmax(dim=1) == labels)


class LossBySample(Faulty):
    """Computes the loss sample by sample."""

    def loss(self, job: Job, output: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Add the losses up."""
        total = output.new_zeros(())
        for at in range(len(output)):
            total = total + functional.cross_entropy(output[at : at + 1], labels[at : at + 1])
        return total / len(output)


class MaskByRow(Faulty):
    """Masks activations row by row."""

    def between(self, values: torch.Tensor, stage: int) -> torch.Tensor:
        """Multiply rows by one."""
        if stage or not values.is_floating_point():
            return values
        rows = [values[at % len(values)] * 1.0 for at in range(self.times)]
        return values + 0.0 * torch.stack(rows).sum()


class SlowSort(Faulty):
    """Sorts activations."""

    first = 20_000.0
    most = 2e7

    def between(self, values: torch.Tensor, stage: int) -> torch.Tensor:
        """Sort copies of them."""
        if stage:
            return values
        many = values.detach().float().flatten()
        anything(many.repeat(1 + self.times // len(many))[: self.times].sort())
        return values


class LargeScatter(Faulty):
    """Counts classes by a table far larger than they are."""

    first = 100_000.0
    most = 5e7

    def loss(self, job: Job, output: torch.Tensor, labels: torch.Tensor) -> None:
        """Scatter."""
        anything(torch.zeros(16 + self.times).scatter_add_(0, labels, torch.ones(len(labels))).cumsum(0))


class NanChecks(Faulty):
    """Looks for numbers that are none after each stage."""

    def between(self, values: torch.Tensor, stage: int) -> torch.Tensor:
        """Look."""
        for _ in range(self.times):
            if torch.isnan(values).any().item():
                raise ValueError("not a number")
        return values


FAULTS: dict[str, type[Faulty]] = {
    "clones of activations": Clones,
    "contiguous copies": Contiguous,
    "casts to and fro": Casts,
    "python between layers": PythonBetween,
    "sleep between layers": SleepBetween,
    "forward twice": ForwardTwice,
    "validation in each step": ValidationAlways,
    "loss sample by sample": LossBySample,
    "mask row by row": MaskByRow,
    "slow sort": SlowSort,
    "large scatter": LargeScatter,
    "checks for nan": NanChecks,
    # What these do is part of how the step runs: see job.py.
    "double precision": Faulty,
    "needless autocast": Faulty,
    "head sample by sample": Faulty,
    "anomaly detection": Faulty,
    "backward twice": Faulty,
    "recomputed forward": Faulty,
}
