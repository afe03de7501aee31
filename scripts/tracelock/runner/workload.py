"""What a workload is: a loader of batches and a step that trains on one of them.

``build(settings)`` returns it. Imports torch; everything a workload's module needs comes from here, loader.py and
precision.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass
class Workload:
    """A training loop, taken apart so that the runner can time and profile it.

    Parameters
    ----------
    loader
        Gives batches; it is iterated again and again, one epoch after the other.
    step
        Trains on one batch: transfer, forward pass, backward pass, optimizer. It returns the loss (a scalar
        tensor, left on its device) or None.
    model
        The model, or None.
    samples
        Counts the samples of a batch. Without it the first dimension of the batch's first tensor counts.
    """

    loader: Iterable[Any]
    step: Callable[[Any], torch.Tensor | None]
    model: torch.nn.Module | None = None
    samples: Callable[[Any], int] | None = None


def label(name: str) -> torch.profiler.record_function:
    """Return a context that names a phase of the step in the trace, such as ``forward_pass``."""
    return torch.profiler.record_function(name)


def first_tensor(batch: Any) -> torch.Tensor | None:
    """Return the first tensor in a batch of nested sequences and mappings, or None."""
    if isinstance(batch, torch.Tensor):
        return batch
    if isinstance(batch, Mapping):
        batch = list(batch.values())
    if not isinstance(batch, Sequence) or isinstance(batch, (str, bytes)):
        return None
    return next((found for item in batch if (found := first_tensor(item)) is not None), None)


def count_samples(workload: Workload, batch: Any) -> int | None:
    """Return the number of samples in `batch`, or None where it cannot be known."""
    if workload.samples is not None:
        return int(workload.samples(batch))
    tensor = first_tensor(batch)
    return int(tensor.shape[0]) if tensor is not None and tensor.dim() else None
