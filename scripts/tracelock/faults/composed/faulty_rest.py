"""Faults of the update, of logging and of what a step does beside training; imports torch."""

from __future__ import annotations

import copy
import gc
import hashlib
import io
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import torch

from tracelock.faults.composed.faulty import Faulty, anything

if TYPE_CHECKING:
    from tracelock.faults.composed.job import Job


class ClipOneByOne(Faulty):
    """Clips the gradient of each parameter by itself."""

    first = 1.0

    def gradients(self, job: Job) -> None:
        """Clip."""
        for _ in range(self.times):
            for parameter in job.parameters:
                torch.nn.utils.clip_grad_norm_(parameter, 1.0)


class AverageOneByOne(Faulty):
    """Keeps a moving average of each parameter, one after the other."""

    first = 1.0
    kept: list[torch.Tensor] | None = None

    def after(self, job: Job, values: torch.Tensor, loss: torch.Tensor) -> None:
        """Move the averages."""
        with torch.no_grad():
            self.kept = self.kept or [each.detach().clone() for each in job.parameters]
            for _ in range(self.times):
                for kept, now in zip(self.kept, job.parameters, strict=True):
                    kept.mul_(0.99).add_(now, alpha=0.01)


class PenaltyOneByOne(Faulty):
    """Adds the norm of each parameter to the loss."""

    first = 1.0

    def penalty(self, job: Job, loss: torch.Tensor) -> torch.Tensor:
        """Add."""
        for _ in range(self.times):
            for each in job.parameters:
                loss = loss + 1e-9 * each.pow(2).sum()
        return loss


class Histograms(Faulty):
    """Counts weights for a log."""

    first = 1.0

    def after(self, job: Job, values: torch.Tensor, loss: torch.Tensor) -> None:
        """Count."""
        for _ in range(self.times):
            for each in job.parameters:
                anything(torch.histc(each.detach(), bins=64))


class NormsOneByOne(Faulty):
    """Reads the norm of each gradient."""

    first = 1.0

    def gradients(self, job: Job) -> None:
        """Read."""
        for _ in range(self.times):
            anything([each.grad.norm().item() for each in job.parameters if each.grad is not None])


class ListsForTheLog(Faulty):
    """Writes numbers as text."""

    first = 100.0

    def after(self, job: Job, values: torch.Tensor, loss: torch.Tensor) -> None:
        """Write."""
        anything(",".join(f"{number:.4f}" for number in range(self.times)))


class SleepInTheLog(Faulty):
    """Writes to a slow log."""

    first = 500.0

    def after(self, job: Job, values: torch.Tensor, loss: torch.Tensor) -> None:
        """Wait."""
        time.sleep(self.count / 1e6)


class Checkpoint(Faulty):
    """Saves the model every third step, on a slow disk."""

    first = 2000.0

    def after(self, job: Job, values: torch.Tensor, loss: torch.Tensor) -> None:
        """Save."""
        if job.steps % 3 == 0:
            torch.save(job.network.state_dict(), io.BytesIO())
            time.sleep(3 * self.count / 1e6)


class ValidationNowAndThen(Faulty):
    """Validates every third step."""

    first = 1.0

    def after(self, job: Job, values: torch.Tensor, loss: torch.Tensor) -> None:
        """Validate."""
        if job.steps % 3 == 0:
            with torch.no_grad():
                for _ in range(3 * self.times):
                    anything(job.plain(values).argmax(dim=1))


class Garbage(Faulty):
    """Collects garbage by hand."""

    first = 1.0

    def after(self, job: Job, values: torch.Tensor, loss: torch.Tensor) -> None:
        """Collect the youngest objects, or all."""
        for _ in range(self.times):
            gc.collect()


class CopyOfTheModel(Faulty):
    """Keeps a copy of the model."""

    first = 1.0

    def after(self, job: Job, values: torch.Tensor, loss: torch.Tensor) -> None:
        """Copy."""
        for _ in range(self.times):
            anything(copy.deepcopy(job.network.state_dict()))


class Subprocess(Faulty):
    """Starts a program."""

    def after(self, job: Job, values: torch.Tensor, loss: torch.Tensor) -> None:
        """Ask for the time."""
        subprocess.run(["date"], check=True, stdout=subprocess.DEVNULL)


class Socket(Faulty):
    """Sends its log to a server that answers slowly."""

    first = 500.0

    def __init__(self, count: float) -> None:
        super().__init__(count)
        code = (
            "import sys,time,socket;s=socket.socket(fileno=int(sys.argv[1]))\n"
            "while s.recv(1): time.sleep(float(sys.argv[2])); s.send(b'.')"
        )
        self.near, far = socket.socketpair()
        command = [sys.executable, "-c", code, str(far.fileno()), str(count / 1e6)]
        self.server = subprocess.Popen(command, pass_fds=(far.fileno(),))
        far.close()

    def after(self, job: Job, values: torch.Tensor, loss: torch.Tensor) -> None:
        """Send and wait for the answer."""
        self.near.send(b".")
        self.near.recv(1)

    def close(self) -> None:
        """Hang up: the server ends with the connection."""
        self.near.close()
        self.server.wait()


class Hash(Faulty):
    """Hashes the batch."""

    first = 10_000.0
    most = 5e7

    def after(self, job: Job, values: torch.Tensor, loss: torch.Tensor) -> None:
        """Hash."""
        anything(hashlib.sha256(b"x" * self.times).hexdigest())


FAULTS: dict[str, type[Faulty]] = {
    "clip one by one": ClipOneByOne,
    "average one by one": AverageOneByOne,
    "penalty one by one": PenaltyOneByOne,
    "histograms of weights": Histograms,
    "norms read one by one": NormsOneByOne,
    "lists for the log": ListsForTheLog,
    "sleep in the log": SleepInTheLog,
    "checkpoint every few steps": Checkpoint,
    "validation every few steps": ValidationNowAndThen,
    "garbage collection": Garbage,
    "copy of the model": CopyOfTheModel,
    "subprocess in each step": Subprocess,
    "socket in each step": Socket,
    "hash of the batch": Hash,
    # Part of how the step runs: see job.py.
    "optimizer one by one": Faulty,
    "dense embedding": Faulty,
}
