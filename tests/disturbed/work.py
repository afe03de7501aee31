"""The workload: microseconds a step, so that a run is little more than its start and its end."""

from __future__ import annotations

from typing import Any

import torch

from tracelock.runner.loader import make_loader
from tracelock.runner.settings import Settings
from tracelock.runner.workload import Workload


def build(settings: Settings) -> Any:
    """Return a linear model on random rows."""
    model = torch.nn.Linear(4, 1)
    rows: Any = torch.randn(64, 4)

    def step(batch: torch.Tensor) -> torch.Tensor:
        loss = model(batch).square().mean()
        loss.backward()
        return loss

    return Workload(make_loader(rows, settings), step, model)
