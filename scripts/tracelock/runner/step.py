"""The usual training step: transfer, forward pass, backward pass, update; with the labels that traces show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tracelock.runner.loader import to_device
from tracelock.runner.precision import Update, autocast
from tracelock.runner.settings import Settings
from tracelock.runner.workload import label


def make_step(
    loss_of: Callable[[Any], torch.Tensor], optimizer: torch.optim.Optimizer, settings: Settings
) -> Callable[[Any], torch.Tensor]:
    """Return a function that trains on one batch and returns its loss, still on the device.

    Parameters
    ----------
    loss_of
        Forward pass: from a batch on the device to a scalar loss.
    optimizer
        Updates the model's parameters; PyTorch itself labels its part of the trace.
    """
    autocast(settings)  # refuses here, and not in the first step, what this device cannot do
    update = Update(optimizer, settings)

    def step(batch: Any) -> torch.Tensor:
        batch = to_device(batch, settings)
        with label("forward_pass"), autocast(settings):
            loss = loss_of(batch)
        with label("backward_pass"):
            update.backward(loss)
        update.step()
        return loss.detach()

    return step
