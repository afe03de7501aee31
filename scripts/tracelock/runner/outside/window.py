"""The profiled window: some steps with torch.profiler, and their trace."""

from __future__ import annotations

import os
import time
from typing import Any

import torch

from .labels import Labels
from .request import Request


class Window:
    """torch.profiler over some steps; `step` is called at the end of each."""

    def __init__(self, request: Request, active: int, warmup: int = 1) -> None:
        activities = [torch.profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        self.labels = Labels()
        self.began = self.ended = 0.0
        self.recorded = 0
        self.first_step = 0  # the number of the first recorded step
        self._left, self._active = warmup, active
        self._profiler = torch.profiler.profile(
            activities=activities,
            schedule=torch.profiler.schedule(wait=0, warmup=warmup, active=active, repeat=1),
            record_shapes=request.record_shapes,
            profile_memory=request.profile_memory,
            with_stack=request.with_stack,
        )
        self._profiler._tracelock = True  # type: ignore[attr-defined]

    def begin(self) -> None:
        """Start the profiler.

        Raises
        ------
        RuntimeError
            If something else is profiling this process.
        """
        self._profiler.start()
        self.began = time.monotonic()
        self.labels.begin()
        self.labels.step()

    def step(self) -> None:
        """Note the end of a step."""
        if self._left:
            self._left -= 1
        else:
            self.recorded += 1
        self.labels.close_between()
        self._profiler.step()
        if self.recorded < self._active:
            self.labels.step()

    def end(self) -> None:
        """Stop the profiler; what follows is as if it had never been."""
        self.labels.end()
        self._profiler.stop()
        self.ended = time.monotonic()

    def export(self, path: str) -> bool:
        """Write the trace to `path`; return whether there is one: without a recorded step there is none."""
        if not self.recorded or self._profiler.profiler is None:
            return False
        temporary = f"{path}.part"
        self._profiler.export_chrome_trace(temporary)
        os.replace(temporary, path)
        return True


def synchronize(device: Any) -> None:
    """Wait until the device of the model has nothing left to do."""
    if device is not None and device.type == "cuda":
        torch.cuda.synchronize(device)


def device_mark(device: Any) -> Any:
    """Let the device note the time when it gets here; None where it is the host."""
    if device is None or device.type != "cuda":
        return None
    event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    event.record()
    return event


def device_in_use() -> Any:
    """Return the GPU that this process computes on, as far as torch has started one, or None."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return torch.device("cuda", torch.cuda.current_device())
    return None
