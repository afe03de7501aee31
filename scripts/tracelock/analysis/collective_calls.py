"""The collectives of a trace, one by one: which, how much, with whom, when.

On a device a collective is a kernel of NCCL or its kin; newer files describe it there. In older ones the label
around its launch (``nccl:all_reduce``) tells name and shapes, and else the kernel's own name. On the host (gloo, MPI)
the label is the collective.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from tracelock.analysis.links import Links
from tracelock.analysis.names import is_collective_call, is_collective_kernel, matching
from tracelock.analysis.nesting import Tree, of_kinds
from tracelock.trace.columns import DeviceKind, HostKind, Trace

HOST = -1  # "device" of a collective that threads of the host carry out
_DEVICE_LIBRARIES = ("nccl:", "rccl:", "hccl:", "xccl:", "ccl:")

# torch.distributed's names; the first whose letters begin the name without underscores
_NAMES = (
    ("allreduce", "all_reduce"),
    ("allgather", "all_gather"),
    ("reducescatter", "reduce_scatter"),
    ("alltoall", "all_to_all"),
    ("broadcast", "broadcast"),
    ("reduce", "reduce"),
    ("gather", "gather"),
    ("scatter", "scatter"),
    ("sendrecv", "send_recv"),
    ("send", "send"),
    ("recv", "recv"),
    ("barrier", "barrier"),
)
_KERNEL = re.compile(r"(?:nccl|rccl)(?:Dev)?Kernel_(?P<name>[A-Za-z]+)")
_TYPES = {  # torch's name: bytes of an element, other spellings (c10::ScalarType, C++)
    "float32": (4, "float"),
    "float64": (8, "double"),
    "float16": (2, "half"),
    "bfloat16": (2, ""),
    "int64": (8, "long longint"),
    "int32": (4, "int"),
    "int16": (2, "short shortint"),
    "int8": (1, "char signedchar"),
    "uint8": (1, "byte unsignedchar"),
    "bool": (1, ""),
    "float8_e4m3fn": (1, ""),
    "float8_e5m2": (1, ""),
    "float8_e4m3fnuz": (1, ""),
    "float8_e5m2fnuz": (1, ""),
    "complex64": (8, "complexfloat"),
    "complex128": (16, "complexdouble"),
}
_SPELLINGS = {spelling: name for name, (_, more) in _TYPES.items() for spelling in (name, *more.split())}


@dataclass(frozen=True)
class Description:
    """What a collective does. What the file does not tell is None."""

    name: str  # "all_reduce", as in torch.distributed
    dtype: str | None = None
    bytes: int | None = None  # the message as nccl-tests counts it: what a rank holds in the end, or in the beginning
    group_size: int | None = None
    group: str | None = None  # name of the process group


@dataclass(frozen=True)
class Call:
    """One collective of one rank; ns on the clock of its trace."""

    what: Description
    device: int  # ordinal, HOST for threads of the host
    track: int  # position in Trace.tracks
    start: int
    end: int


def collective_calls(trace: Trace, tree: Tree, links: Links) -> list[Call]:
    """Return the collectives of `trace` in order of their start."""
    calls = [*_on_devices(trace, tree, links), *_on_the_host(trace)]
    return sorted(calls, key=lambda call: (call.start, call.end))


def _on_devices(trace: Trace, tree: Tree, links: Links) -> Iterable[Call]:
    device = trace.device
    kernels = matching(trace.texts, device.name, is_collective_kernel) & (device.kind == DeviceKind.KERNEL)
    label = matching(trace.texts, trace.host.name, is_collective_call)
    for row in np.flatnonzero(kernels).tolist():
        start = int(device.start[row])
        what = _of_kernel(trace, row) or _of_label(trace, _climb(tree, label, int(links.launch[row])))
        what = what or Description(_of_kernel_name(trace.texts[device.name[row]]))
        yield Call(what, int(device.device[row]), int(device.track[row]), start, start + int(device.duration[row]))


def _climb(tree: Tree, wanted: Any, row: int) -> int:
    while row >= 0 and not wanted[row]:
        row = int(tree.parent[row])
    return row


def _on_the_host(trace: Trace) -> Iterable[Call]:
    host = trace.host
    labels = matching(trace.texts, host.name, is_collective_call) & of_kinds(
        host, (HostKind.ANNOTATION, HostKind.OPERATOR)
    )
    for row in np.flatnonzero(labels).tolist():
        if not trace.texts[host.name[row]].startswith(_DEVICE_LIBRARIES):
            what = _of_label(trace, row)
            start = int(host.start[row])
            if what is not None:
                yield Call(what, HOST, int(host.track[row]), start, start + int(host.duration[row]))


def _of_kernel(trace: Trace, row: int) -> Description | None:
    """Return what the file writes beside the kernel, None in files that write nothing there."""
    number = int(trace.device.collective[row])
    facts: Mapping[str, Any] = trace.collectives[number] if number >= 0 else {}
    if not facts.get("Collective name"):
        return None
    dtype = type_name(facts.get("dtype"))
    counts = [_number(facts.get(key)) for key in ("In msg nelems", "Out msg nelems")]
    group = facts.get("Process Group Name")
    return Description(
        name=canonical(str(facts["Collective name"])),
        dtype=dtype,
        bytes=_bytes(max((each for each in counts if each is not None), default=None), dtype),
        group_size=_number(facts.get("Group size")),
        group=None if group is None else str(group),
    )


def _of_label(trace: Trace, row: int) -> Description | None:
    """Return what the label at host row `row` tells, None for -1."""
    if row < 0:
        return None
    host = trace.host
    name = canonical(trace.texts[host.name[row]].partition(":")[2])
    dtype = type_name(next(iter(_json(trace, int(host.types[row]))), None))
    shapes = [shape for shape in _json(trace, int(host.shapes[row])) if shape]
    alike = name in ("all_reduce", "broadcast", "reduce", "all_to_all", "send", "recv")  # input and output
    known = alike and shapes and all(_is_shape(shape) for shape in shapes)
    return Description(name, dtype, _bytes(sum(map(math.prod, shapes)) if known else None, dtype))


def _bytes(elements: int | None, dtype: str | None) -> int | None:
    return None if elements is None or dtype not in _TYPES else elements * _TYPES[dtype][0]


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, int) for each in value)


def _json(trace: Trace, text: int) -> list[Any]:
    try:
        value = msgspec.json.decode(trace.texts[text]) if text >= 0 else []
    except msgspec.DecodeError:
        return []
    return value if isinstance(value, list) else []


def canonical(name: str) -> str:
    """Return torch.distributed's name of a collective: ``_allgather_base`` is ``all_gather``."""
    letters = re.sub(r"[^a-z]", "", name.lower())
    return next((known for start, known in _NAMES if letters.startswith(start)), name or "unknown")


def _of_kernel_name(name: str) -> str:
    found = _KERNEL.match(name)
    if found and found["name"] != "Generic":
        return canonical(found["name"])
    return "cross_device_reduce" if "cross_device_reduce" in name else "unknown"


def type_name(dtype: Any) -> str | None:
    """Return torch's name of a data type: ``bfloat16`` for ``BFloat16`` and ``c10::BFloat16``; others as they are."""
    if not dtype:
        return None
    return _SPELLINGS.get(re.sub(r"^c10::| ", "", str(dtype)).lower(), str(dtype))


def _number(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError):
        return None
