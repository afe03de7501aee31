"""A device for one run alone: exclusive locks in a folder of this machine, one for each GPU and one for the CPU.

The lock is inherited by the whole process tree of the run, so it outlives a killed run as long as one of its
loading processes still uses the device.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tracelock.errors import EXIT_FAILED, Problem, TracelockError
from tracelock.runner.gpus import Gpu, visible_gpus
from tracelock.runner.locks import open_lock, try_lock, wait_for

FOLDER_VARIABLE = "TRACELOCK_LOCK_DIR"
# Not TMPDIR: a batch system gives each job one of its own, and two jobs would never meet at one lock.
_FOLDER = "/tmp/tracelock-locks"  # noqa: S108


@dataclass
class Lease:
    """A device that no other run uses until it is released, and every process that inherited it has ended."""

    gpu: Gpu | None
    descriptor: int

    def release(self) -> None:
        """Give the device back; more than once is the same as once."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1


def lock_folder() -> Path:
    """Return the folder of the locks, which every user of this machine can write to.

    Raises
    ------
    TracelockError
        If it cannot be made.
    """
    folder = Path(os.environ.get(FOLDER_VARIABLE) or _FOLDER)
    try:
        folder.mkdir(parents=True)
        folder.chmod(0o1777)
    except FileExistsError:
        pass
    except OSError as error:
        hint = f"name a folder of this machine in {FOLDER_VARIABLE}"
        raise TracelockError(Problem(str(folder), f"cannot be made: {error.strerror}", hint), EXIT_FAILED) from None
    return folder


def lease_device(device: str, tell: Callable[[str], None]) -> Lease:
    """Wait for a device and return its lease; for a GPU, CUDA_VISIBLE_DEVICES then names it alone.

    Parameters
    ----------
    device
        ``auto`` (a GPU where one is visible, else the CPU), ``cpu`` or ``cuda``.
    tell
        Hears that, and why, we wait.
    """
    gpus = [] if device == "cpu" else visible_gpus()
    lease = _wait(gpus or [None], tell)
    if lease.gpu:
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        os.environ["CUDA_VISIBLE_DEVICES"] = lease.gpu.uuid
    elif device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    return lease


def _wait(devices: Sequence[Gpu | None], tell: Callable[[str], None]) -> Lease:
    """Return a lease of the first of `devices` that becomes free."""
    folder = lock_folder()
    descriptors = [open_lock(folder / lock_name(gpu)) for gpu in devices]
    got: list[int] = []

    def attempt() -> bool:
        got.extend(next(([number] for number, descriptor in enumerate(descriptors) if try_lock(descriptor)), []))
        return bool(got)

    what = "the CPU of this machine" if devices[0] is None else f"one of {len(devices)} GPUs"
    wait_for(attempt, lambda waited: tell(f"waiting since {waited:.0f} s for {what}: other runs hold it"))
    for number, descriptor in enumerate(descriptors):
        if number != got[0]:
            os.close(descriptor)
    return Lease(devices[got[0]], descriptors[got[0]])


def lock_name(gpu: Gpu | None) -> str:
    """Return the name of a device's lock file: by UUID for a GPU, by host name for the CPU."""
    key = gpu.uuid if gpu else f"cpu-{socket.gethostname()}"
    return re.sub(r"[^A-Za-z0-9._-]", "_", key) + ".lock"
