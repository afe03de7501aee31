"""Watches DataLoaders: where they are built, how long the loop waits for them, how many samples they give."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from .patching import wrap
from .places import user_place

if TYPE_CHECKING:
    from .session import Session


def install(session: Session) -> None:
    """Watch every DataLoader that is built or iterated from now on."""
    wrap(_BaseDataLoaderIter, "__next__", lambda original: _next(session, original))
    wrap(DataLoader, "__iter__", lambda original: _iter(session, original))
    wrap(DataLoader, "__init__", lambda original: _init(session, original))


def _next(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def __next__(self: Any) -> Any:  # noqa: N807
        if not session.in_loop():
            return original(self)
        began = time.perf_counter_ns()
        batch = original(self)
        ended = time.perf_counter_ns()
        session.tally.loaded(getattr(self, "_tracelock_loader", 0), began, ended, samples_in(batch))
        return batch

    return __next__


def _iter(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def __iter__(self: Any) -> Any:  # noqa: N807
        began = time.perf_counter_ns()
        iterator = original(self)
        if session.in_loop():
            session.tally.started(began, time.perf_counter_ns())
        if isinstance(iterator, _BaseDataLoaderIter):
            iterator._tracelock_loader = id(self)  # type: ignore[attr-defined]
        return iterator

    return __iter__


def _init(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        original(self, *args, **kwargs)
        # An outer class may build an inner loader (accelerate's does); each is noted.
        session.builds["loaders"].append(describe(self))

    return __init__


def describe(loader: Any) -> dict[str, Any]:
    """Return what is known of a DataLoader: its class, its arguments in force, where it was built."""
    names = ("batch_size", "num_workers", "pin_memory", "persistent_workers", "prefetch_factor", "drop_last")
    facts: dict[str, Any] = {"id": id(loader), "class": type(loader).__name__, "place": user_place(3)}
    for name in names:
        value = getattr(loader, name, None)
        facts[name] = value if isinstance(value, (bool, int, type(None))) else str(value)
    dataset = getattr(loader, "dataset", None)
    facts["dataset"] = None if dataset is None else type(dataset).__name__
    try:
        facts["batches"] = len(loader)
    except Exception:  # an iterable dataset has no length, and a length may do anything
        facts["batches"] = None
    return facts


def samples_in(batch: Any) -> int | None:
    """Return the first dimension of the first tensor of a batch, or None."""
    tensor = _first_tensor(batch, 0)
    return int(tensor.shape[0]) if tensor is not None and tensor.dim() else None


def _first_tensor(batch: Any, depth: int) -> torch.Tensor | None:
    if isinstance(batch, torch.Tensor):
        return batch
    if type(batch) in (tuple, list) and batch and isinstance(batch[0], torch.Tensor):
        return batch[0]  # what most loaders give, without the slow question for a Mapping
    if isinstance(batch, Mapping):
        batch = list(batch.values())
    if depth > 4 or not isinstance(batch, Sequence) or isinstance(batch, (str, bytes)):
        return None
    return next((found for item in batch[:8] if (found := _first_tensor(item, depth + 1)) is not None), None)
