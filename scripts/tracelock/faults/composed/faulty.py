"""What a fault can change of a composed workload; imports torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from tracelock.faults.composed.job import Job

Sample = tuple[torch.Tensor, int]


class Faulty:
    """A fault that is switched on: the places where it may act, each doing nothing by default.

    Parameters
    ----------
    count
        How much of it: calls, passes or microseconds, whatever the fault counts.
    """

    first = 4.0  # the count that its size is calibrated from
    most = 100_000.0

    def __init__(self, count: float) -> None:
        self.count = count

    @property
    def times(self) -> int:
        """Return the count as a whole number."""
        return max(1, round(self.count))

    def sample(self, sample: Sample) -> Sample:
        """Act when a sample is read."""
        return sample

    def collate(self, samples: list[Sample]) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Act when a batch is made; None leaves it to the next."""
        return None

    def before(self, job: Job, values: torch.Tensor, labels: torch.Tensor) -> None:
        """Act before the forward pass."""

    def between(self, values: torch.Tensor, stage: int) -> torch.Tensor:
        """Act between two stages."""
        return values

    def loss(self, job: Job, output: torch.Tensor, labels: torch.Tensor) -> torch.Tensor | None:
        """Compute the loss; None leaves it to the next."""
        return None

    def penalty(self, job: Job, loss: torch.Tensor) -> torch.Tensor:
        """Add to the loss."""
        return loss

    def gradients(self, job: Job) -> None:
        """Act between backward pass and update."""

    def after(self, job: Job, values: torch.Tensor, loss: torch.Tensor) -> None:
        """Act after the update."""

    def close(self) -> None:
        """Let go of what it holds."""


def anything(value: Any) -> None:
    """Use a value, so that what made it is not in vain."""
