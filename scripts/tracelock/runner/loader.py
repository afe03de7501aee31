"""The standard settings of data loading as arguments of torch.utils.data.DataLoader."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import DataLoader

from tracelock.runner.settings import Settings


def loader_options(settings: Settings) -> dict[str, Any]:
    """Return the keyword arguments for a DataLoader that the standard settings ask for.

    PyTorch refuses ``prefetch_factor`` and ``persistent_workers`` without workers, and warns about pinned memory
    where there is no GPU; both are left out then. The generator makes order and workers' seeds repeatable.
    """
    options: dict[str, Any] = {
        "batch_size": settings["batch_size"],
        "num_workers": settings["num_workers"],
        "drop_last": settings["drop_last"],
        "pin_memory": settings["pin_memory"] and settings.device != "cpu",
        "generator": torch.Generator().manual_seed(settings.seed),
    }
    workers = {name: settings[name] for name in ("persistent_workers", "prefetch_factor")}
    if settings["num_workers"]:
        options.update({name: value for name, value in workers.items() if value is not None})
    return options


def make_loader(dataset: Any, settings: Settings, **more: Any) -> DataLoader[Any]:
    """Return a shuffling DataLoader over `dataset` by the standard settings; `more` adds or replaces arguments."""
    return DataLoader(dataset, **{"shuffle": True, **loader_options(settings), **more})


def to_device(batch: Any, settings: Settings) -> Any:
    """Return a tensor, or a list, tuple or dict of tensors, on the run's device."""
    if isinstance(batch, torch.Tensor):
        return batch.to(settings.device, non_blocking=settings["non_blocking"])
    if isinstance(batch, dict):
        return {key: to_device(value, settings) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        return type(batch)(to_device(value, settings) for value in batch)
    return batch
