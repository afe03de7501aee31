"""Names the phases of a step in the trace, only while the profiler records: forward, backward, copies, what is between.

Time between the optimizer and the first forward pass that no DataLoader explains is a loader of the script's own; the
row ``between_steps`` shows it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .patching import wrap


class Labels:
    """Labels in force from `begin` to `end`.

    The attribute ``before_forward_ns`` holds, for each step, the time from its begin to its first forward or backward
    pass.
    """

    def __init__(self) -> None:
        self.before_forward_ns: list[int] = []
        self._depth = 0
        self._thread = threading.get_ident()
        self._undo: list[Callable[[], None]] = []
        self._between: Any = None
        self._step_began = 0

    def begin(self) -> None:
        """Put the labels in."""
        self._undo = [
            wrap(torch.nn.Module, "__call__", self._forward),
            wrap(torch.Tensor, "to", self._copy),
            wrap(torch.Tensor, "cuda", self._copy),
        ]

    def end(self) -> None:
        """Take them out again."""
        self.close_between()
        for undo in self._undo:
            undo()

    def step(self) -> None:
        """Note that a step begins."""
        self.close_between()
        self._between = torch.profiler.record_function("between_steps")
        self._between.__enter__()
        self._step_began = time.perf_counter_ns()

    def close_between(self) -> None:
        """Note that the step's own work begins, or the step is over."""
        if self._between is not None:
            self._between.__exit__(None, None, None)
            self._between = None
            self.before_forward_ns.append(time.perf_counter_ns() - self._step_began)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Label a block; what is inside another phase has its label already."""
        if threading.get_ident() != self._thread or self._depth:
            yield
            return
        self.close_between()
        self._depth += 1
        try:
            with torch.profiler.record_function(name):
                yield
        finally:
            self._depth -= 1

    def _forward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
            if self._depth or threading.get_ident() != self._thread:
                return original(module, *args, **kwargs)
            with self.phase("forward_pass"):
                return original(module, *args, **kwargs)

        return __call__

    def _copy(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def copy(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            # Only what leaves the host is labelled; a batch on its device already is not copied.
            if self._depth or tensor.device.type != "cpu" or not _leaves_host(original, args, kwargs):
                return original(tensor, *args, **kwargs)
            with self.phase("host_to_device"):
                return original(tensor, *args, **kwargs)

        return copy


def _leaves_host(original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    if original.__name__ == "cuda":
        return True
    device = kwargs.get("device", args[0] if args else None)
    if isinstance(device, torch.Tensor):
        device = device.device
    if isinstance(device, (str, int)):
        device = torch.device(device)
    return isinstance(device, torch.device) and device.type != "cpu"
