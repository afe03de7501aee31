"""Keeps the losses of the first steps: what ``backward`` is called on, and labels backward passes in the window."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from .patching import wrap

if TYPE_CHECKING:
    from .session import Session

FIRST = 50


def install(session: Session) -> None:
    """Watch ``torch.autograd.backward``, which ``Tensor.backward`` calls, too."""
    wrap(torch.autograd, "backward", lambda original: _backward(session, original))


def _backward(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        losses = session.losses
        first = tensors if isinstance(tensors, torch.Tensor) else next(iter(tensors), None)
        if len(losses) < FIRST and isinstance(first, torch.Tensor) and first.numel() == 1:
            losses.append((session.tally.count, first.detach()))
        labels = session.director.labels
        if labels is None:
            return original(tensors, *args, **kwargs)
        with labels.phase("backward_pass"):
            return original(tensors, *args, **kwargs)

    return backward


def first_losses(session: Session) -> list[tuple[int, float]]:
    """Return (step, loss) of the first backward passes; waits for the device."""
    return [(step, float(loss)) for step, loss in session.losses]
