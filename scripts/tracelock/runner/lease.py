"""A device for one run alone, by locks in a folder of this machine: one for each GPU, one for each core.

A lease ends with the process that took it, whatever lives on of what that has started (claims.py). Beside the locks
lies a note of who holds them, so that a run that waits can say for whom.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracelock.errors import EXIT_FAILED, Problem, TracelockError
from tracelock.io import write_json
from tracelock.runner import identity
from tracelock.runner.claims import Claim, claim, has_no_locks, holder_pid
from tracelock.runner.gpus import Gpu, visible_gpus
from tracelock.runner.locks import wait_for

FOLDER_VARIABLE = "TRACELOCK_LOCK_DIR"
# Not TMPDIR: a batch system gives each job one of its own, and two jobs would never meet at one lock.
_FOLDER = "/tmp/tracelock-locks"  # noqa: S108
_MACHINE, _GATE = 0, 1


@dataclass
class Lease:
    """A device that no other run uses until it is released, or the process that holds it has ended.

    Parameters
    ----------
    gpu
        The GPU, None for the CPU.
    cores
        The cores of the machine that are leased with it, by number; none for a GPU.
    """

    gpu: Gpu | None
    cores: tuple[int, ...] = ()
    claims: list[Claim] = field(default_factory=list)
    note: Path | None = None

    def release(self) -> None:
        """Give the device back; more than once is the same as once."""
        if self.note is not None:
            with contextlib.suppress(OSError):
                self.note.unlink()
        for each in self.claims:
            each.release()
        self.claims.clear()


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


def lease_device(
    device: str,
    tell: Callable[[str], None],
    what: Mapping[str, Any] | None = None,
    exclusive: str = "device",
) -> Lease:
    """Wait for a device and return its lease; for a GPU, CUDA_VISIBLE_DEVICES (or ROCm's variable) then names it alone.

    Parameters
    ----------
    device
        ``auto`` (a GPU where one is visible, else the CPU), ``cpu`` or ``cuda``.
    tell
        Hears that, and for whom, we wait.
    what
        What the lease is for (``study``, ``variant``, ``repeat``): others that wait are told.
    exclusive
        ``device``, or ``machine``: then no other run is on this machine at the same time.
    """
    gpus = [] if device == "cpu" else visible_gpus()
    folder = lock_folder()
    lease = Lease(None)
    try:
        _enter_machine(lease, folder, exclusive == "machine", tell)
        if gpus:
            lease.gpu = _one_of(lease, folder, gpus, tell)
        else:
            lease.cores = _all_cores(lease, folder, tell)
    except BaseException as error:
        lease.release()
        if isinstance(error, OSError) and has_no_locks(error):
            what_is_wrong = f"has no file locks: {error.strerror}"
            hint = f"name a folder of this machine's own disk in {FOLDER_VARIABLE}"
            raise TracelockError(Problem(str(folder), what_is_wrong, hint), EXIT_FAILED) from None
        raise
    lease.note = _leave_note(folder, lease, what or {})
    _show_alone(lease.gpu, device)
    return lease


def lock_name(gpu: Gpu | None) -> str:
    """Return the name of a device's lock file: by UUID for a GPU; one file for the CPU, a byte of it for each core."""
    key = gpu.uuid if gpu else f"cpu-{socket.gethostname()}"
    return re.sub(r"[^A-Za-z0-9._-]", "_", key) + ".lock"


def _enter_machine(lease: Lease, folder: Path, alone: bool, tell: Callable[[str], None]) -> None:
    """Take the machine, shared or alone. Whoever waits for it holds the gate, so that nobody overtakes for ever."""
    path = folder / f"machine-{socket.gethostname()}.lock"
    gate = Lease(None)
    try:
        _take(gate, path, _GATE, False, "the machine", tell)
        _take(lease, path, _MACHINE, not alone, "the whole machine" if alone else "the machine", tell)
    finally:
        gate.release()


def _one_of(lease: Lease, folder: Path, gpus: Sequence[Gpu], tell: Callable[[str], None]) -> Gpu:
    """Return the first of `gpus` that becomes free, leased."""
    got: list[Gpu] = []

    def attempt() -> bool:
        for gpu in gpus:
            if found := claim(folder / lock_name(gpu)):
                lease.claims.append(found)
                got.append(gpu)
                return True
        return False

    paths = [(folder / lock_name(gpu), 0) for gpu in gpus]
    what = f"one of {len(gpus)} GPUs" if len(gpus) > 1 else f"GPU {gpus[0].uuid}"
    wait_for(attempt, lambda waited: tell(_waiting(what, waited, folder, paths)))
    return got[0]


def _all_cores(lease: Lease, folder: Path, tell: Callable[[str], None]) -> tuple[int, ...]:
    """Return the cores that this process may use, leased one after the other: one order for all, no circle."""
    count = os.cpu_count() or 1
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(count))
    what = "the CPU of this machine" if len(cores) >= count else f"cores {core_text(cores)}"
    for core in cores:
        _take(lease, folder / lock_name(None), core, False, what, tell)
    return tuple(cores)


def _take(lease: Lease, path: Path, byte: int, shared: bool, what: str, tell: Callable[[str], None]) -> None:
    """Add a claim to a lease, waiting for it."""

    def attempt() -> bool:
        found = claim(path, byte, shared)
        if found:
            lease.claims.append(found)
        return found is not None

    wait_for(attempt, lambda waited: tell(_waiting(what, waited, path.parent, [(path, byte)])))


def core_text(cores: Sequence[int]) -> str:
    """Return ``0-3,8`` for numbers in ascending order, as taskset writes them."""
    parts: list[list[int]] = []
    for core in cores:
        if parts and parts[-1][-1] == core - 1:
            parts[-1][1:] = [core]
        else:
            parts.append([core])
    return ",".join("-".join(map(str, part)) for part in parts)


def _leave_note(folder: Path, lease: Lease, what: Mapping[str, Any]) -> Path | None:
    """Write down who holds a lease; notes of processes that have ended are taken away."""
    for path in folder.glob("holder-*.json"):
        with contextlib.suppress(OSError, ValueError, KeyError):
            if identity.is_alive(json.loads(path.read_text(encoding="utf-8"))) is False:
                path.unlink()
    locks = sorted({Path(each.path).name for each in lease.claims})
    who = identity.describe(locks=locks, cores=core_text(lease.cores), **what)
    number = sum(1 for _ in folder.glob(f"holder-{os.getpid()}-*.json"))
    note = folder / f"holder-{os.getpid()}-{number}.json"
    try:
        write_json(note, who)
    except OSError:  # a full disk: the lease holds without it
        return None
    with contextlib.suppress(OSError):
        note.chmod(0o644)
    return note


def _waiting(what: str, waited: float, folder: Path, locks: Sequence[tuple[Path, int]]) -> str:
    """Return who waits for what, for how long, who holds it and how to free it."""
    holders = [text for path, byte in locks if (text := _holder(folder, path, byte))]
    held = f"held by {'; '.join(holders)}" if holders else "another run holds it"
    return f"waiting since {waited:.0f} s for {what}, {held}"


def _holder(folder: Path, path: Path, byte: int) -> str | None:
    """Return who holds a lock and how to end it, by the kernel's account and the holder's own note."""
    pid = holder_pid(path, byte)
    notes = [note for note in _notes(folder) if path.name in note.get("locks", ())]
    chosen = [note for note in notes if note["pid"] == pid] or ([] if pid else notes)
    if chosen:
        return f"{identity.told(chosen[0])} (to end it: kill {chosen[0]['pid']})"
    return f"pid {pid}, which waits or starts, too (to end it: kill {pid})" if pid else None


def _notes(folder: Path) -> list[dict[str, Any]]:
    """Return the notes of living holders."""
    found = []
    for path in folder.glob("holder-*.json"):
        with contextlib.suppress(OSError, ValueError, KeyError):
            note = json.loads(path.read_text(encoding="utf-8"))
            if identity.is_alive(note) is not False:
                found.append(note)
    return found


def _show_alone(gpu: Gpu | None, device: str) -> None:
    """Have CUDA or ROCm see the leased GPU alone, by its UUID; a run on the CPU sees none."""
    if gpu is None:
        if device == "cpu":
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
        return
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    if gpu.vendor == "amd":
        for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):  # they would count within what ROCm shows
            os.environ.pop(name, None)
        os.environ["ROCR_VISIBLE_DEVICES"] = gpu.selector
    else:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu.uuid
