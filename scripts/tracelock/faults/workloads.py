"""A small network on the CPU with one switch that injects a fault; imports torch, runs inside the runner.

Every fault costs about as much as the training itself, so that it is the main cause where it is switched on, and the
healthy job has none of them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tracelock.runner.loader import make_loader
from tracelock.runner.precision import make_optimizer, prepare_model
from tracelock.runner.settings import Setting, Settings
from tracelock.runner.step import make_step
from tracelock.runner.workload import Workload

FAULTS = (
    "none",
    "slow_samples",
    "slow_start",
    "stacked_collate",
    "repeated_stack",
    "slow_operator",
    "checkpoint",
    "logging",
    "validation",
    "leak",
    "sawtooth",
    "item",
)
SETTINGS: tuple[Setting, ...] = (
    Setting("fault", "str", "none", "what is wrong", allowed=FAULTS),
    Setting("strength", "float", 1.0, "how much of it", minimum=0),
    Setting("kind", "str", "mlp", "the network", allowed=("mlp", "conv", "transformer")),
    Setting("width", "int", 512, "features, or channels times 16", minimum=16),
    Setting("layers", "int", 3, "hidden layers of the mlp", minimum=1),
    Setting("samples", "int", 512, "samples of an epoch", minimum=1),
)
FEATURES = 256
Sample = tuple[torch.Tensor, int]


class Samples(torch.utils.data.Dataset[Sample]):
    """Samples of noise; each costs `wait_s` of waiting, as one that is read over a network does."""

    def __init__(self, count: int, wait_s: float, start_s: float, seed: int) -> None:
        self._values = torch.randn(count, FEATURES, generator=torch.Generator().manual_seed(seed))
        self._wait_s, self._start_s = wait_s, start_s
        self._started = False

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: int) -> Sample:
        if self._start_s and torch.utils.data.get_worker_info() and not self._started:
            time.sleep(self._start_s)  # what opening a data set costs a new worker
            self._started = True
        if self._wait_s:
            time.sleep(self._wait_s)
        return self._values[index], index % 10


def collate_by_stacks(samples: list[Sample]) -> tuple[torch.Tensor, torch.Tensor]:
    """Put a batch together feature by feature."""
    rows = [row for row, _ in samples]
    columns = [torch.stack([row[at] for row in rows]) for at in range(FEATURES)]
    return torch.stack(columns, dim=1), torch.tensor([label for _, label in samples])


class Attend(nn.Module):
    """One encoder layer over 16 tokens of 16 features."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.embed = nn.Linear(FEATURES // 16, width)
        self.layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Return one row of features for each sample."""
        embedded: torch.Tensor = self.embed(batch.view(len(batch), 16, -1))
        encoded: torch.Tensor = self.layer(embedded)
        return encoded.mean(dim=1)


def _network(settings: Settings) -> nn.Module:
    width = settings["width"]
    if settings["kind"] == "conv":
        channels = max(4, width // 16)
        layers = [
            nn.Unflatten(1, (1, 16, 16)),
            nn.Conv2d(1, channels, 3, padding=1),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
        ]
        layers += [nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten()]
        return nn.Sequential(*layers, nn.Linear(4 * channels, 10))
    if settings["kind"] == "transformer":
        return nn.Sequential(Attend(width), nn.Linear(width, 10))
    looks = [Read()] if settings["fault"] == "item" else []
    hidden = [part for _ in range(settings["layers"]) for part in (nn.Linear(width, width), nn.ReLU(), *looks)]
    return nn.Sequential(nn.Linear(FEATURES, width), nn.ReLU(), *hidden, nn.Linear(width, 10))


class Read(nn.Module):
    """Looks at what passes, on the host."""

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Return `batch`; a GPU has to finish it first."""
        if batch.detach().mean().item() > 1e9:
            raise ValueError("activations explode")
        return batch


class Loop:
    """The step of the job, with the fault that is switched on."""

    def __init__(self, settings: Settings, model: Any, step: Callable[[Any], torch.Tensor | None]) -> None:
        self.fault, self.strength = settings["fault"], settings["strength"]
        self.model, self.plain = model, step
        self.steps = 0
        self.kept: list[torch.Tensor] = []
        self.folder = Path(tempfile.mkdtemp(prefix="tracelock-fault-"))

    def __call__(self, batch: Any) -> torch.Tensor | None:
        """Train on one batch, and do what is wrong before or after it."""
        self.steps += 1
        getattr(self, f"_{self.fault}", lambda _: None)(batch)
        return self.plain(batch)

    def _repeated_stack(self, batch: Any) -> None:
        """Stack rows one at a time where one call could do."""
        for row in batch[0].repeat(int(20 * self.strength), 1)[:, :8]:
            torch.stack([row])

    def _slow_operator(self, batch: Any) -> None:
        """Sort far more than is needed."""
        batch[0].repeat(int(60 * self.strength), 1).flatten().sort()

    def _checkpoint(self, _: Any) -> None:
        """Save the model every third step, to a slow disk."""
        if self.steps % 3 == 0:
            torch.save(self.model.state_dict(), self.folder / "checkpoint.pt")
            time.sleep(0.1 * self.strength)

    def _logging(self, _: Any) -> None:
        """Write to a slow log in each step."""
        time.sleep(0.03 * self.strength)

    def _validation(self, batch: Any) -> None:
        """Look at the validation set every third step."""
        if self.steps % 3 == 0:
            with torch.no_grad():
                for _ in range(int(12 * self.strength)):
                    self.model(batch[0])

    def _leak(self, batch: Any) -> None:
        """Keep a part of each batch."""
        self.kept.append(batch[0].repeat(int(8 * self.strength), 1))

    def _sawtooth(self, batch: Any) -> None:
        """Allocate and let go a small tensor a thousand times, each time for something else."""
        row = batch[0][0]
        for index in range(int(700 * self.strength)):
            (row + 1 if index % 2 else row * 2).sum()


def build(settings: Settings) -> Workload:
    """Return the workload with the fault that ``fault`` names."""
    fault, strength = settings["fault"], settings["strength"]
    wait_s = 0.001 * strength if fault == "slow_samples" else 0.0
    start_s = 0.4 * strength if fault == "slow_start" else 0.0
    dataset = Samples(settings["samples"], wait_s, start_s, settings.seed)
    more: dict[str, Any] = {"collate_fn": collate_by_stacks} if fault == "stacked_collate" else {}
    model = prepare_model(_network(settings), settings, torch.zeros(settings["batch_size"], FEATURES))
    optimizer = make_optimizer(torch.optim.SGD, model.parameters(), settings, lr=0.01)
    criterion = nn.CrossEntropyLoss()

    def loss_of(batch: Any) -> torch.Tensor:
        features, labels = batch
        return criterion(model(features), labels)  # type: ignore[no-any-return]

    return Workload(
        make_loader(dataset, settings, **more), Loop(settings, model, make_step(loss_of, optimizer, settings)), model
    )
