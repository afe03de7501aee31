"""A workload of microseconds a step whose settings make it fail, wait or give nothing, each in one way."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import torch

from tracelock.runner.loader import make_loader
from tracelock.runner.settings import Setting, Settings
from tracelock.runner.workload import Workload, label

SETTINGS = (
    Setting("items", "int", 32, "items of an epoch", minimum=0),
    Setting("fail_at", "int", None, "the step that raises"),
    Setting("kill_at", "int", None, "the step that kills its own process"),
    Setting("sleep_s", "float", 0.0, "seconds that a step sleeps"),
    Setting("item_fails", "bool", False, "whether items raise"),
    Setting("rewords", "bool", False, "whether the step turns what ends it into an exception of its own"),
    Setting("announce", "str", None, "a file that the step writes its number to"),
    Setting("result", "str", "workload", "what build returns", allowed=("workload", "nothing", "no_step", "raises")),
)


class Items(torch.utils.data.Dataset[torch.Tensor]):
    """Random rows, each with some noise that is drawn when it is asked for."""

    def __init__(self, count: int, fails: bool) -> None:
        self._rows = torch.randn(count, 3)
        self._fails = fails

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> torch.Tensor:
        if self._fails:
            raise ValueError("item is broken")
        return self._rows[index] + 0.1 * torch.randn(3)


def build(settings: Settings) -> Any:
    """Return the workload, or something else that ``result`` asks for."""
    if settings["result"] == "nothing":
        return None
    if settings["result"] == "raises":
        raise RuntimeError("no such data\nand more lines")
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    count = 0

    def step(batch: torch.Tensor) -> torch.Tensor:
        nonlocal count
        count += 1
        if settings["announce"]:
            with open(settings["announce"], "a") as stream:  # noqa: PTH123
                stream.write(f"{count} {time.monotonic()}\n")
        if count == settings["fail_at"]:
            raise ValueError("the step is broken")
        if count == settings["kill_at"]:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            time.sleep(settings["sleep_s"])
        except BaseException as error:
            if settings["rewords"]:
                raise BrokenPipeError(32, "Broken pipe") from error
            raise
        with label("forward_pass"):
            loss = model(batch).square().mean()
        with label("backward_pass"):
            optimizer.zero_grad()
            loss.backward()
        optimizer.step()
        return loss

    loader = make_loader(Items(settings["items"], settings["item_fails"]), settings)
    return Workload(loader, "no function" if settings["result"] == "no_step" else step, model)  # type: ignore[arg-type]
