"""The well-known walk-through of the PyTorch Profiler: a small network on records, trained with Adam.

Its two pathologies are settings: how a batch is collated (``collate``), and what a record costs to decode
(``item_cost``) while the loader has no workers.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import torch
from torch import nn

from tracelock.errors import Problem, TracelockError
from tracelock.runner.loader import make_loader
from tracelock.runner.precision import make_optimizer, prepare_model
from tracelock.runner.settings import Settings
from tracelock.runner.step import make_step
from tracelock.runner.workload import Workload
from tracelock.runner.workloads.tables import MLP

SETTINGS = MLP
FEATURES = 512
CLASSES = 10
Item = tuple[torch.Tensor, int]


class Records(torch.utils.data.Dataset[Item]):
    """Compressed records of 512 features of one of ten classes; the same seed gives the same records.

    Parameters
    ----------
    count
        Records.
    item_cost
        How many times a record is unpacked before it is given out: the work that parsing, decoding or resampling
        is elsewhere.
    """

    def __init__(self, count: int, item_cost: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        centres = torch.randn(CLASSES, FEATURES, generator=generator)
        self._labels = torch.randint(CLASSES, (count,), generator=generator).tolist()
        noise = torch.randn(count, FEATURES, generator=generator)
        rows = (centres[self._labels] + noise).tolist()
        self._packed = [zlib.compress(struct.pack(f"<{FEATURES}f", *row)) for row in rows]
        self._item_cost = item_cost

    def __len__(self) -> int:
        return len(self._packed)

    def __getitem__(self, index: int) -> Item:
        for _ in range(self._item_cost):
            data = zlib.decompress(self._packed[index])
        return torch.frombuffer(bytearray(data), dtype=torch.float32).view(1, FEATURES), self._labels[index]


def collate_cat(items: list[Item]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (N, 512) features and (N,) labels by a single torch.cat."""
    return torch.cat([row for row, _ in items]), torch.tensor([number for _, number in items])


class StackFields:
    """Gives the batch of `collate_cat` by one torch.stack for every `width` features.

    It goes through the records field by field, as code does that treats every column by its name. A class, so
    that loading processes of every start method can have it.
    """

    def __init__(self, width: int) -> None:
        self._width = width

    def __call__(self, items: list[Item]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return (N, 512) features and (N,) labels."""
        starts = range(0, FEATURES, self._width)
        fields = [torch.stack([row[0, at : at + self._width] for row, _ in items]) for at in starts]
        return torch.cat(fields, dim=1), torch.tensor([number for _, number in items])


def build(settings: Settings) -> Workload:
    """Return the workload.

    Raises
    ------
    TracelockError
        If ``stacks`` does not divide 512.
    """
    stacks = settings["stacks"]
    if FEATURES % stacks:
        raise TracelockError(Problem("settings.stacks", f"is {stacks}, which does not divide {FEATURES}"))
    records = Records(settings["records"], settings["item_cost"], settings.seed)
    collate = StackFields(FEATURES // stacks) if settings["collate"] == "stack" else collate_cat
    layers = nn.Sequential(nn.Linear(FEATURES, 256), nn.ReLU(), nn.Linear(256, CLASSES))
    model = prepare_model(layers, settings, torch.zeros(settings["batch_size"], FEATURES))
    optimizer = make_optimizer(torch.optim.Adam, model.parameters(), settings, lr=settings["learning_rate"])
    criterion = nn.CrossEntropyLoss()

    def loss_of(batch: Any) -> torch.Tensor:
        features, labels = batch
        return criterion(model(features), labels)  # type: ignore[no-any-return]

    return Workload(make_loader(records, settings, collate_fn=collate), make_step(loss_of, optimizer, settings), model)
