"""What holds a step up, and what its removal could bring: the part of an analysis that a diagnosis rests on.

Dataclasses alone. Times are microseconds, means over the complete steps unless a field says otherwise. The definitions
are those of docs/diagnosis.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

WaitKind: TypeAlias = Literal["synchronization", "copy", "allocation", "queue"]


@dataclass(frozen=True)
class TraceRow:
    """One row of the trace, for a person who looks it up."""

    name: str
    start_us: float  # since the first event of the trace
    duration_us: float
    inside: str | None = None  # the outermost operator around it
    code: str | None = None  # the user's innermost frame around it, where stacks were recorded


@dataclass(frozen=True)
class Bounds:
    """The two chains of a step: what the device works, and what the host works when it waits for no device.

    A step can be no shorter than the longer of the two. `host_us` is what is left of the host's time without
    `waiting_us`.
    """

    step_us: float
    device_us: float | None  # busy: a union of rows and of the gaps of 3 µs between them; None without a device
    host_us: float
    waiting_us: float  # calls that waited while the device worked

    @property
    def idle_us(self) -> float:
        """Return how long the device does nothing in a step; 0 without a device."""
        return 0.0 if self.device_us is None else max(0.0, self.step_us - self.device_us)

    def gain(self, device: float = 0.0, host: float = 0.0, waiting: float = 0.0) -> float:
        """Return the part of the step, 0..1, that can be saved at most without these times.

        Parameters
        ----------
        device
            Work of the device that nothing else hides.
        host
            Work of the host.
        waiting
            Time in which the host waited for the device.
        """
        if self.step_us <= 0:
            return 0.0
        shortest = max((self.device_us or 0.0) - device, self.host_us - host, 0.0)
        saved = min(self.step_us - shortest, device + host + waiting)
        return min(1.0, max(0.0, saved / self.step_us))


@dataclass(frozen=True)
class Waiting:
    """Calls of one kind in which the host waits for the device."""

    kind: WaitKind
    name: str  # the outermost operator around the calls, or the call where there is none
    calls_per_step: float
    host_us: float  # in the calls, and in the operators right around them
    waiting_us: float  # in the calls, while the device worked
    stall_us: float  # the device had nothing to do when the calls ended: from there back and on to its next work
    rows: tuple[TraceRow, ...]  # the longest


@dataclass(frozen=True)
class Copying:
    """Copies of one direction and kind of host memory, with what they cost both sides."""

    kind: str  # "HtoD", "DtoH"
    memory: str | None  # "pageable", "pinned"
    asked: bool  # by an operator that does nothing but copy; False: an operator copies its arguments
    calls_per_step: float
    device_us: float
    exposed_us: float  # of it, while no kernel ran
    host_us: float  # in the operators that made them
    waiting_us: float  # of it, while the device worked
    waits: bool | None  # the host waits for most of their time; None where the calls are not known
    beside_kernels: bool  # on a stream that runs no kernels
    rows: tuple[TraceRow, ...]


@dataclass(frozen=True)
class Repetition:
    """An operator that a loop calls many times in a row."""

    name: str
    calls_per_step: float
    mean_us: float  # of one call, on the host
    host_us: float
    device_us: float
    in_loader: bool
    in_optimizer: bool
    rows: tuple[TraceRow, ...]
    between_us: float = 0.0  # from each call to the next of the loop: the Python that goes with it


@dataclass(frozen=True)
class Updating:
    """The optimizer's part of a step, as PyTorch labels it (``Optimizer.step#Adam.step``)."""

    host_us: float
    operators_per_step: float  # outermost ones
    one_by_one: bool  # no multi-tensor or fused operator among them: each parameter by itself
    kernels_per_step: float
    kernel_us: float | None  # mean duration of its kernels, None without any
    device_us: float  # from its first kernel to its last


@dataclass(frozen=True)
class Gaps:
    """The device's idle time by the length of its gaps."""

    per_step: float  # gaps
    idle_us: float
    launching_us: float  # of it, in gaps that are about as long as it takes to launch
    usual_launch_us: float  # from the begin of one launch to that of the next, median


@dataclass(frozen=True)
class Hitch:
    """Calls of one name that take far longer than it does as a rule, and wait for no device."""

    name: str
    steps: int  # in how many steps
    calls_per_step: float
    usual_us: float  # what a call takes itself as a rule
    host_us: float  # beyond that
    without_worst_us: float  # the same without the step that has most of it
    rows: tuple[TraceRow, ...]


@dataclass(frozen=True)
class Pause:
    """Long stretches of the steps in which neither device nor operators of the host worked."""

    code: str | None  # the user's frame around them
    steps: int  # in how many steps
    host_us: float
    rows: tuple[TraceRow, ...]
    before_loading: bool = False  # they end where the loader is asked for a batch
    without_worst_us: float | None = None  # mean over the steps but the one that has most of it; None for one step
    returning_us: float | None = None  # of `host_us`, at places of the step where one stands in others, too


@dataclass(frozen=True)
class Excess:
    """What long steps spend beyond a usual one: the lower quartile of all."""

    steps: int  # how many are long
    excess_us: float  # mean over all steps
    loading_us: float  # of it, waiting for data
    work: float | None  # calls of operators in the long steps, in units of a usual step; None without any
    rows: tuple[TraceRow, ...]  # the long steps
    without_worst_us: float | None = None  # `excess_us` less `loading_us` without the longest step


@dataclass(frozen=True)
class Costs:
    """Everything of this file; None in `Analysis` where the trace holds no complete window."""

    bounds: Bounds
    loading_us: float  # host time in the loader
    operators_us: float  # host time in operators and runtime calls, neither waiting nor loading
    waits: tuple[Waiting, ...]  # the longest waiting first
    copies: tuple[Copying, ...]
    repetitions: tuple[Repetition, ...]  # the longest first
    pauses: tuple[Pause, ...]
    excess: Excess | None  # None where fewer than three steps are complete
    optimizer: Updating | None  # None where the steps label no optimizer
    gaps: Gaps | None = None  # None without a device, or where no launch is known
    hitches: tuple[Hitch, ...] = ()  # the longest first
