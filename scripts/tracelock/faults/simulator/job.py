"""A training job: everything that decides how long its steps take, faults and cures included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias

from tracelock.faults.simulator.machine import Machine
from tracelock.faults.simulator.network import Network, Precision

Sync: TypeAlias = Literal["", "item", "nonzero", "cpu", "synchronize", "foreign"]
Pause: TypeAlias = Literal["", "checkpoint", "logging", "validation"]


@dataclass(frozen=True)
class Settings:
    """The standard settings of a run, under their names in a study; defaults of a tuned GPU job."""

    batch_size: int = 32
    num_workers: int = 8
    pin_memory: bool = True
    persistent_workers: bool = True
    prefetch_factor: int = 2
    non_blocking: bool = True
    amp: str = "off"
    compile: bool = False
    channels_last: bool = True
    matmul_precision: str = "high"
    optimizer_foreach: bool = True
    optimizer_fused: bool = False
    cuda_graph: bool = False
    threads: int = 8


SETTINGS = {part.name for part in fields(Settings)}


@dataclass(frozen=True)
class Data:
    """The data set: what a sample costs to make, and how long an epoch is."""

    sample_us: float = 100.0  # processor time to load and decode one sample
    spread: float = 0.1  # sigma of the logarithm of a batch's cost
    collate_calls: int = 2  # `stack` calls a batch
    collate_us: float = 12.0  # of each
    worker_start_us: float = 1_500_000.0  # imports and opening the data set, until a new worker can begin
    epoch_steps: int = 10_000


@dataclass(frozen=True)
class Habits:
    """What the code of the loop does, that no setting changes."""

    logs_item: bool = True  # `loss.item()` at the end of each step
    sync: Sync = ""  # in the middle of the step
    sync_times: int = 0
    foreign_us: float = 0.0  # of "foreign": what the device waits for another process before it goes on
    stalls: float = 0.0  # times a step that the host is stuck in a call that is short as a rule
    stall_us: float = 0.0
    prefetches: bool = False  # copies the next batch on a stream of its own
    repeated: int = 0  # small operators on the step's path that one large one could replace
    slow_sample_us: float = 0.0  # one operator of the user that is not made well, per sample
    pause: Pause = ""
    pause_every: int = 1
    pause_us: float = 0.0
    leak_bytes: int = 0  # held after each step
    teeth: int = 0  # small allocations that are freed at once, each with its operator
    retries: int = 0  # times a step that the allocator gives memory back and asks again,
    fits: int = 0  # for batches larger than this
    overlaps: bool = True  # gradients are reduced in buckets during the backward pass


@dataclass(frozen=True)
class World:
    """The other ranks: how many, and how uneven."""

    ranks: int = 1
    straggler: float = 1.0  # device time of the last rank, in units of the others'
    imbalance: float = 0.0  # sigma of the logarithm of each rank's share of work in each step
    late_us: float = 0.0  # for which now this and now that host is held up before it launches anything
    late_last: bool = False  # the last rank's host is, in every step, and no other


@dataclass(frozen=True)
class Job:
    """One training job. `clock` is the device's clock as a part of its full clock."""

    machine: Machine
    network: Network
    settings: Settings = field(default_factory=Settings)
    data: Data = field(default_factory=Data)
    habits: Habits = field(default_factory=Habits)
    world: World = field(default_factory=World)
    optimizer: Literal["SGD", "Adam"] = "SGD"
    clock: float = 1.0
    seed: int = 0

    def precision(self, family: str) -> Precision:
        """Return the precision in which kernels of `family` compute.

        As in PyTorch: convolutions use TF32 where the device has it, matrix products where the setting allows it.
        """
        if self.settings.amp != "off":
            return "half"
        if self.machine.capability[0] < 8 or family not in ("gemm", "conv"):
            return "fp32"
        return "tf32" if family == "conv" or self.settings.matmul_precision != "highest" else "fp32"

    @property
    def retries(self) -> int:
        """Return how often a step the allocator has to give memory back."""
        return self.habits.retries if self.settings.batch_size > self.habits.fits else 0

    def with_settings(self, changes: Mapping[str, Any]) -> Job:
        """Return the job with some settings changed; settings that it does not have change nothing."""
        known = {name: value for name, value in changes.items() if name in SETTINGS}
        return replace(self, settings=replace(self.settings, **known))

    def with_habits(self, **changes: Any) -> Job:
        """Return the job with other habits."""
        return replace(self, habits=replace(self.habits, **changes))

    def with_data(self, **changes: Any) -> Job:
        """Return the job with another data set."""
        return replace(self, data=replace(self.data, **changes))
