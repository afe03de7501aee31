"""What the names of rows say: which load data, synchronise, communicate. Each different name is looked at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np

from tracelock.analysis.intervals import Mask
from tracelock.analysis.name_table import Use, first
from tracelock.trace.columns import Int32

_COMMUNICATION: Final = frozenset({Use.COMMUNICATION, Use.LOCAL})
_COLLECTIVE_CALL: Final = re.compile(r"(nccl|rccl|gloo|ucc|mpi|xccl|hccl|ccl|mccl|cncl|flagcx|uccl):\w")
_SYNCHRONISING: Final = re.compile(
    r"(cuda|hip|cu|mu|musa)(Device|Stream|Event|Ctx|Context)Synchronize(_ptsz)?$"
    r"|(cuda|hip)(Memcpy|Memset)(2D|3D|Peer|ToSymbol|FromSymbol|ToArray|FromArray|DtoH|HtoD|DtoD)?$"
    r"|hipMemcpyWithStream$|cuMemcpy(?!\w*Async)\w*$"
    r"|ze\w*HostSynchronize$|zeCommandQueueSynchronize$"
    r"|aten::(item|_local_scalar_dense)$"
)


def is_loading(name: str) -> bool:
    """Return whether a host row is one ``next(iterator)`` of a DataLoader or DataPipe."""
    return name.startswith("enumerate(DataPipe)#") or (
        name.startswith("enumerate(DataLoader)#") and name.endswith(".__next__")
    )


def is_step(name: str) -> bool:
    """Return whether a row is a ``ProfilerStep#N``."""
    return name.startswith("ProfilerStep#") or name == "ProfilerStep*"


def is_collective_call(name: str) -> bool:
    """Return whether a host row is a collective, as the process groups name it: ``nccl:all_reduce``."""
    return _COLLECTIVE_CALL.match(name) is not None


def is_collective_kernel(name: str) -> bool:
    """Return whether a kernel moves data between devices for a collective or an exchange of experts (`name_table`)."""
    return first(name, _COMMUNICATION) is Use.COMMUNICATION


def is_synchronising(name: str) -> bool:
    """Return whether a host row waits for the device: a synchronisation, a blocking copy, ``item``."""
    return _SYNCHRONISING.match(name) is not None


_COSTLY: Final = frozenset({is_collective_kernel})  # asked of the names that occur alone


def matching(texts: Sequence[str], names: Int32, predicate: Callable[[str], bool]) -> Mask:
    """Return which rows have a name that `predicate` is true of, shape of `names`; a row without name has none."""
    held = np.zeros(len(texts) + 1, np.bool_)  # the last place is that of -1
    few = predicate in _COSTLY
    for identifier in _identifiers(len(texts), names, few):
        held[identifier] = predicate(texts[identifier])
    found: Mask = held[names]
    return found


def _identifiers(count: int, names: Int32, few: bool) -> Iterable[int]:
    """Return the ids that may occur in `names`: all of them where looking costs more, unless `few` are wanted."""
    if not few and count < len(names) // 8:
        return range(count)
    held = np.zeros(count + 1, np.bool_)
    held[names] = True
    found: list[int] = np.flatnonzero(held[:-1]).tolist()
    return found
