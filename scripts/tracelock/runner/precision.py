"""The standard settings of model and optimizer: mixed precision, memory format, compilation, CUDA graphs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from tracelock.errors import Problem, TracelockError
from tracelock.runner.settings import Settings

_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def prepare_model(model: torch.nn.Module, settings: Settings, sample: Any = None) -> Any:
    """Return `model` on its device, with the memory format, CUDA graphs and compilation that the settings ask for.

    Parameters
    ----------
    sample
        An input like those of every step, on any device; only ``cuda_graph`` needs it.

    Raises
    ------
    TracelockError
        If the settings ask for something that this device cannot do.
    """
    model = model.to(settings.device)
    if settings["channels_last"]:
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    if settings["cuda_graph"]:
        return _graphed(model, settings, sample)
    return torch.compile(model) if settings["compile"] else model


def _graphed(model: torch.nn.Module, settings: Settings, sample: torch.Tensor | None) -> Any:
    """Return `model` with its forward and backward pass captured as CUDA graphs of fixed shapes."""
    if settings.device == "cpu":
        raise TracelockError(
            Problem("settings.cuda_graph", "is true, but this run has no GPU", "run it with device cuda")
        )
    if settings["compile"] or not settings["drop_last"] or sample is None:
        what = "is true, which needs compile false, drop_last true and a workload that gives a sample of its input"
        raise TracelockError(Problem("settings.cuda_graph", what))
    sample = images(sample.to(settings.device), settings)
    dtype = _DTYPES.get(settings["amp"])
    # The cache of casted weights would be captured with addresses that later steps no longer own.
    with torch.autocast("cuda", dtype=dtype, enabled=dtype is not None, cache_enabled=False):
        return torch.cuda.make_graphed_callables(model, (sample,))


def images(batch: torch.Tensor, settings: Settings) -> torch.Tensor:
    """Return a batch of images (N, C, H, W) in the memory format that the settings ask for."""
    return batch.contiguous(memory_format=torch.channels_last) if settings["channels_last"] else batch


def autocast(settings: Settings) -> AbstractContextManager[Any]:
    """Return the context for the forward pass that ``amp`` asks for.

    Raises
    ------
    TracelockError
        For fp16 on the CPU, which has no loss scaling there in the oldest PyTorch that we support.
    """
    amp, kind = settings["amp"], settings.device.split(":")[0]
    if amp == "off":
        return nullcontext()
    if amp == "fp16" and kind == "cpu":
        raise TracelockError(Problem("settings.amp", "is 'fp16', which needs a GPU", "use bf16 on the CPU"))
    return torch.autocast(kind, dtype=_DTYPES[amp])


def make_optimizer(
    kind: Callable[..., torch.optim.Optimizer], parameters: Iterable[Any], settings: Settings, **more: Any
) -> torch.optim.Optimizer:
    """Return an optimizer such as ``torch.optim.SGD`` with ``foreach`` and ``fused`` as the settings ask.

    Raises
    ------
    TracelockError
        If this PyTorch's optimizer has no such path.
    """
    options = {name: settings[f"optimizer_{name}"] for name in ("foreach", "fused")}
    options = {name: value for name, value in options.items() if value is not None}
    missing = [name for name in options if name not in inspect.signature(kind).parameters]
    if missing:
        name = getattr(kind, "__name__", str(kind))
        what = f"is set, but {name} of torch {torch.__version__} has no such argument"
        raise TracelockError([Problem(f"settings.optimizer_{word}", what) for word in missing])
    return kind(parameters, **options, **more)


class Update:
    """Backward pass and update of an optimizer; losses are scaled where amp is fp16."""

    def __init__(self, optimizer: torch.optim.Optimizer, settings: Settings) -> None:
        self.optimizer = optimizer
        self._scaler: Any = _grad_scaler() if settings["amp"] == "fp16" else None

    def backward(self, loss: torch.Tensor) -> None:
        """Replace the gradients by those of `loss`."""
        self.optimizer.zero_grad(set_to_none=True)
        (self._scaler.scale(loss) if self._scaler else loss).backward()

    def step(self) -> None:
        """Update the parameters."""
        if not self._scaler:
            self.optimizer.step()
            return
        self._scaler.step(self.optimizer)
        self._scaler.update()


def _grad_scaler() -> Any:
    """Return a scaler of losses on the GPU, from where this PyTorch keeps it."""
    return torch.amp.GradScaler("cuda") if hasattr(torch.amp, "GradScaler") else torch.cuda.amp.GradScaler()
