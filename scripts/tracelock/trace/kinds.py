"""One meaning for every spelling of a category, from the first Kineto of 2020 to today, and of its relatives."""

from __future__ import annotations

import enum
import functools
from typing import Final, NamedTuple

from tracelock.trace.columns import DeviceKind, FlowKind, HostKind


class Table(enum.IntEnum):
    """Where an event goes, judged by its category; instants and metadata are told apart by their phase."""

    HOST = 0
    DEVICE = 1
    FLOW = 2
    INSTANT = 3  # cpu_instant_event: [memory]
    SPAN = 4  # Trace: the profiler's own record of its window, on no thread
    UNNAMED = 5  # no category: metadata, instants, and complete events of foreign writers


class Meaning(NamedTuple):
    """What a category stands for: the table, and the kind within it (0 where a table has no kinds)."""

    table: Table
    kind: int


# Keys around the events, any of which makes an object without events a trace all the same.
KINETO_KEYS: Final = frozenset(
    {"schemaVersion", "deviceProperties", "distributedInfo", "baseTimeNanoseconds", "traceName", "displayTimeUnit"}
)

# Every category that Kineto has written. Capitals are those of 2020 and 2021.
CATEGORIES: Final[dict[str, Meaning]] = {
    "cpu_op": Meaning(Table.HOST, HostKind.OPERATOR),
    "Operator": Meaning(Table.HOST, HostKind.OPERATOR),
    "python": Meaning(Table.HOST, HostKind.OPERATOR),
    "cuda_runtime": Meaning(Table.HOST, HostKind.RUNTIME),
    "Runtime": Meaning(Table.HOST, HostKind.RUNTIME),
    "hip_runtime": Meaning(Table.HOST, HostKind.RUNTIME),
    "xpu_runtime": Meaning(Table.HOST, HostKind.RUNTIME),
    "mtia_runtime": Meaning(Table.HOST, HostKind.RUNTIME),
    "privateuse1_runtime": Meaning(Table.HOST, HostKind.RUNTIME),
    "glow_runtime": Meaning(Table.HOST, HostKind.RUNTIME),
    "hpu_op": Meaning(Table.HOST, HostKind.RUNTIME),
    "cuda_driver": Meaning(Table.HOST, HostKind.DRIVER),
    "privateuse1_driver": Meaning(Table.HOST, HostKind.DRIVER),
    "user_annotation": Meaning(Table.HOST, HostKind.ANNOTATION),
    "python_function": Meaning(Table.HOST, HostKind.PYTHON),
    "overhead": Meaning(Table.HOST, HostKind.OVERHEAD),
    "kernel": Meaning(Table.DEVICE, DeviceKind.KERNEL),
    "Kernel": Meaning(Table.DEVICE, DeviceKind.KERNEL),
    "gpu_memcpy": Meaning(Table.DEVICE, DeviceKind.MEMCPY),
    "Memcpy": Meaning(Table.DEVICE, DeviceKind.MEMCPY),
    "gpu_memset": Meaning(Table.DEVICE, DeviceKind.MEMSET),
    "Memset": Meaning(Table.DEVICE, DeviceKind.MEMSET),
    "cuda_sync": Meaning(Table.DEVICE, DeviceKind.SYNC),
    "gpu_user_annotation": Meaning(Table.DEVICE, DeviceKind.ANNOTATION),
    "ac2g": Meaning(Table.FLOW, FlowKind.LAUNCH),
    "async": Meaning(Table.FLOW, FlowKind.LAUNCH),
    "async_cpu_to_gpu": Meaning(Table.FLOW, FlowKind.LAUNCH),
    "async_gpu": Meaning(Table.FLOW, FlowKind.LAUNCH),
    "fwdbwd": Meaning(Table.FLOW, FlowKind.FORWARD_BACKWARD),
    "forward_backward": Meaning(Table.FLOW, FlowKind.FORWARD_BACKWARD),
    "cpu_instant_event": Meaning(Table.INSTANT, 0),
    "Trace": Meaning(Table.SPAN, 0),
    "": Meaning(Table.UNNAMED, HostKind.OTHER),
}

_FOLDED: Final = {name.lower(): meaning for name, meaning in CATEGORIES.items()}

# Builds of Kineto for other devices put their own word before these: gcu_runtime, xpu_driver, MLU_MEMCPY.
_ENDINGS: Final[dict[str, Meaning]] = {
    "_runtime": CATEGORIES["cuda_runtime"],
    "_driver": CATEGORIES["cuda_driver"],
    "_memcpy": CATEGORIES["gpu_memcpy"],
    "_memset": CATEGORIES["gpu_memset"],
    "_sync": CATEGORIES["cuda_sync"],
    "_kernel": CATEGORIES["kernel"],
    "_user_annotation": CATEGORIES["gpu_user_annotation"],
}

_OTHER: Final = Meaning(Table.HOST, HostKind.OTHER)


@functools.lru_cache(maxsize=4096)
def meaning(category: str) -> Meaning:
    """Return what `category` stands for; a word that nobody knows is host work of kind OTHER."""
    folded = category.lower()
    if folded in _FOLDED:
        return CATEGORIES.get(category, _FOLDED[folded])
    for ending, known in _ENDINGS.items():
        if folded.endswith(ending):
            return known
    return _OTHER
