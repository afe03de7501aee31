"""One meaning for every spelling of a category, from the first Kineto of 2020 to today, and from other profilers."""

from __future__ import annotations

from typing import Final

from tracelock.trace.columns import DeviceKind, FlowKind, HostKind

HOST_CATEGORIES: Final[dict[str, HostKind]] = {
    "cpu_op": HostKind.OPERATOR,
    "Operator": HostKind.OPERATOR,
    "operator": HostKind.OPERATOR,
    "python": HostKind.OPERATOR,
    "cuda_runtime": HostKind.RUNTIME,
    "Runtime": HostKind.RUNTIME,
    "runtime": HostKind.RUNTIME,
    "hip_runtime": HostKind.RUNTIME,
    "xpu_runtime": HostKind.RUNTIME,
    "mtia_runtime": HostKind.RUNTIME,
    "mtia_ccp_events": HostKind.OTHER,
    "privateuse1_runtime": HostKind.RUNTIME,
    "glow_runtime": HostKind.RUNTIME,
    "hpu_runtime": HostKind.RUNTIME,
    "cuda_driver": HostKind.DRIVER,
    "hip_driver": HostKind.DRIVER,
    "xpu_driver": HostKind.DRIVER,
    "privateuse1_driver": HostKind.DRIVER,
    "user_annotation": HostKind.ANNOTATION,
    "UserAnnotation": HostKind.ANNOTATION,
    "python_function": HostKind.PYTHON,
    "PythonFunction": HostKind.PYTHON,
    "overhead": HostKind.OVERHEAD,
    "Overhead": HostKind.OVERHEAD,
}

DEVICE_CATEGORIES: Final[dict[str, DeviceKind]] = {
    "kernel": DeviceKind.KERNEL,
    "Kernel": DeviceKind.KERNEL,
    "hpu_op": DeviceKind.KERNEL,
    "gpu_memcpy": DeviceKind.MEMCPY,
    "Memcpy": DeviceKind.MEMCPY,
    "memcpy": DeviceKind.MEMCPY,
    "gpu_memset": DeviceKind.MEMSET,
    "Memset": DeviceKind.MEMSET,
    "memset": DeviceKind.MEMSET,
    "cuda_sync": DeviceKind.SYNC,
    "gpu_user_annotation": DeviceKind.ANNOTATION,
}

FLOW_CATEGORIES: Final[dict[str, FlowKind]] = {
    "ac2g": FlowKind.LAUNCH,
    "async": FlowKind.LAUNCH,
    "async_gpu": FlowKind.LAUNCH,
    "fwdbwd": FlowKind.FORWARD_BACKWARD,
    "forward_backward": FlowKind.FORWARD_BACKWARD,
}

SPAN_CATEGORY: Final = "Trace"  # the profiler's own record of its window: on no thread


def fold(category: str) -> str:
    """Return the spelling under which a category is known, or the category itself."""
    return _FOLDED.get(category.lower(), category)


_FOLDED: Final[dict[str, str]] = {
    known.lower(): known
    for known in (*reversed(HOST_CATEGORIES), *reversed(DEVICE_CATEGORIES), *reversed(FLOW_CATEGORIES), SPAN_CATEGORY)
}
