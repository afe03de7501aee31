"""What the main thread of the steps does that it might not have to: the part of an analysis for work, not for waits.

Dataclasses alone. Times are microseconds, means over the complete steps; the parts of one step may overlap (a loop
may hold copies), so that they are never added up. The definitions are those of docs/diagnosis.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from tracelock.analysis.costs import TraceRow

UnusedKind: TypeAlias = Literal["forward", "statistics", "beside", "repeated-backward", "recomputation", "anomaly"]
PythonKind: TypeAlias = Literal[
    "sleep",
    "lock",
    "socket",
    "files",
    "subprocess",
    "json",
    "pickle",
    "regex",
    "garbage",
    "hash",
    "copy",
    "torch",  # calls of PyTorch by the user's code, outside of the operators that they make
    "python",
]
Place: TypeAlias = Literal["step", "sample", "collate", "loader"]


@dataclass(frozen=True)
class Loop:
    """A sequence of operators that repeats with nothing else between, outside of loader, backward and optimizer."""

    names: tuple[str, ...]  # of one turn, in order
    turns_per_step: float
    calls_per_step: float
    host_us: float  # from the first operator of a run to its last: with the Python between them
    backward_us: float  # in the backward pass of its operators
    rows: tuple[TraceRow, ...]


@dataclass(frozen=True)
class Copies:
    """Operators of one kind that only copy, in the forward and the backward pass."""

    kind: Literal["clone", "contiguous", "cast", "copy"]
    calls_per_step: float
    host_us: float
    rows: tuple[TraceRow, ...]
    device_us: float = 0.0  # that devices work for it


@dataclass(frozen=True)
class Unused:
    """Operators whose results neither the backward pass nor the optimizer needs, or needs once and gets twice.

    "forward": layers that no backward pass belongs to; "statistics": operators after the backward pass and outside the
    optimizer, or such as only count and check; "beside": others that no gradient goes through; "repeated-backward":
    nodes of the graph that ran again in the same step; "recomputation": layers inside the backward pass; "anomaly": the
    checks of autograd's anomaly detection. What comes every k-th step counts as a k-th of what it takes then.
    """

    kind: UnusedKind
    calls_per_step: float
    steps: int  # in how many steps
    host_us: float  # from the first of a run to its last, with the Python between them
    names: tuple[str, ...]  # the most expensive ones
    rows: tuple[TraceRow, ...]
    device_us: float = 0.0  # that devices work for it
    every: int | None = None  # it comes every k-th step, k from 2 on; None: in each, or at no distance that can be told


@dataclass(frozen=True)
class PythonTime:
    """Time in Python frames themselves, with no operator in them: waiting by kind, or the user's own code."""

    kind: PythonKind
    place: Place
    code: str | None  # the user's innermost frame: "train.py(44): check"
    calls_per_step: float
    steps: int  # in how many steps
    host_us: float
    rows: tuple[TraceRow, ...]


@dataclass(frozen=True)
class Work:
    """Everything of this file."""

    operators_us: float  # some operator worked, loader left out
    between_us: float  # nothing recorded worked, in stretches below half a millisecond; loops left out
    between: int  # of these stretches, a step
    excess_us: float  # in the median step: what each stretch has beyond the usual time between two operators
    backward_us: float
    loops: tuple[Loop, ...]
    copies: tuple[Copies, ...]
    unused: tuple[Unused, ...]
    double_us: float | None  # operators on float64 tensors; None without input types
    embedding_us: float  # dense gradients of embeddings, and what else handles them
    python: tuple[PythonTime, ...] | None  # None without frames of Python
    double_device_us: float = 0.0  # that devices work for these
    trains: bool = True  # some backward pass is in the steps
    batches: int = 0  # that the loader gave, so that figures of it can be said per batch
