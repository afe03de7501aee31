"""Networks as lists of stages, so that faults can stand between them; imports torch."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

from tracelock.faults.composed.plan import Plan

CLASSES, TOKENS, FIELDS = 10, 24, 8
SPARSE_ROWS = 150_000


class Last(nn.Module):
    """The last output of a recurrent layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.LSTM(width, width, batch_first=True)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return all outputs, shape of `values`."""
        found: torch.Tensor = self.layer(values)[0]
        return found


class Mean(nn.Module):
    """The mean over tokens."""

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return shape (batch, width)."""
        return values.mean(dim=1)


def stages(plan: Plan, dense: bool) -> nn.ModuleList:
    """Return the network, its parts in order.

    Parameters
    ----------
    dense
        Whether the table of a recommender gets dense gradients.
    """
    width = plan.width
    makers = {"mlp": _mlp, "deep": _mlp, "conv": _conv, "transformer": _transformer, "lstm": _lstm}
    if plan.network != "recommender":
        return nn.ModuleList(makers[plan.network](plan))
    large = any(name == "dense embedding" for name, _ in plan.faults)
    table = nn.Embedding(SPARSE_ROWS if large else 2000, width, sparse=large and not dense)
    hidden = [nn.Sequential(nn.Linear(width * FIELDS, width * FIELDS), nn.ReLU()) for _ in range(plan.depth)]
    return nn.ModuleList([nn.Sequential(table, nn.Flatten()), *hidden, nn.Linear(width * FIELDS, CLASSES)])


def _mlp(plan: Plan) -> Iterator[nn.Module]:
    for _ in range(plan.depth):
        yield nn.Sequential(nn.Linear(plan.width, plan.width), nn.ReLU())
    yield nn.Linear(plan.width, CLASSES)


def _conv(plan: Plan) -> Iterator[nn.Module]:
    channels = 3
    for _ in range(plan.depth):
        yield nn.Sequential(nn.Conv2d(channels, plan.width, 3, padding=1), nn.BatchNorm2d(plan.width), nn.ReLU())
        channels = plan.width
    yield nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * channels, CLASSES))


def _transformer(plan: Plan) -> Iterator[nn.Module]:
    for _ in range(plan.depth):
        yield nn.TransformerEncoderLayer(plan.width, 4, 2 * plan.width, dropout=0.1, batch_first=True)
    yield nn.Sequential(Mean(), nn.Linear(plan.width, CLASSES))


def _lstm(plan: Plan) -> Iterator[nn.Module]:
    for _ in range(plan.depth):
        yield Last(plan.width)
    yield nn.Sequential(Mean(), nn.Linear(plan.width, CLASSES))


def samples(plan: Plan, count: int) -> torch.Tensor:
    """Return `count` inputs, seeded by the plan."""
    chance = torch.Generator().manual_seed(plan.seed)
    if plan.network == "recommender":
        return torch.randint(0, 2000, (count, FIELDS), generator=chance)
    shapes: dict[str, tuple[int, ...]] = {
        "conv": (3, 24, 24),
        "transformer": (TOKENS, plan.width),
        "lstm": (TOKENS, plan.width),
    }
    return torch.randn(count, *shapes.get(plan.network, (plan.width,)), generator=chance)
