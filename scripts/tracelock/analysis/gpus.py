"""The figures of each accelerator over the window of the complete steps."""

from __future__ import annotations

from tracelock.analysis.gpu import DeviceTime, occupancy, sm_efficiency, utilization
from tracelock.analysis.idle import HostTime, idle_causes
from tracelock.analysis.intervals import length
from tracelock.analysis.kernels import tensor_cores, why_unknown
from tracelock.analysis.links import is_busy
from tracelock.analysis.model import Gpu, TensorCores
from tracelock.analysis.prepared import Prepared

HOST_NAMES = 20  # of what the host ran while the device was idle


def gpus(known: Prepared) -> tuple[Gpu, ...]:
    """Return the figures of each device that worked in the window; microseconds."""
    host_time = HostTime(known.trace, known.windows.track)
    inside = [(time, time.within(*known.extent)) for time in known.times]
    return tuple(_gpu(known, time, window, host_time) for time, window in inside if len(window.busy))


def _gpu(known: Prepared, time: DeviceTime, inside: DeviceTime, host_time: HostTime) -> Gpu:
    rows = known.trace.device
    mine = is_busy(rows) & (rows.device == time.device)
    idle = idle_causes(known.trace, known.links, mine, inside.busy, host_time)
    low, high = inside.span
    return Gpu(
        id=time.device,
        span_us=(high - low) / 1000,
        busy_us=length(inside.busy) / 1000,
        idle_us=(high - low - length(inside.busy)) / 1000,
        compute_us=length(inside.compute) / 1000,
        communication_us=length(inside.communication) / 1000,
        memory_us=length(inside.memory) / 1000,
        exposed_communication_us=length(inside.exposed_communication) / 1000,
        utilization=utilization(time, *known.extent),
        sm_efficiency=sm_efficiency(rows, mine, *known.extent),
        occupancy_pct=occupancy(rows, mine, *known.extent),
        idle_causes_us=idle.to_causes(),
        window_us=(known.extent[1] - known.extent[0]) / 1000,
        linked_share=known.links.share_of_time(rows, mine),
        host_idle=idle.to_host(HOST_NAMES),
        tensor_core_share=None if (cores := _tensor_cores(known, time.device)) is None else cores.used_share,
    )


def _tensor_cores(known: Prepared, device: int) -> TensorCores | None:
    rows = known.trace.device
    return tensor_cores(known.trace, known.tree, known.links, is_busy(rows) & (rows.device == device) & known.device)


def unknown(known: Prepared, found: tuple[Gpu, ...]) -> dict[str, str]:
    """Return why figures of the devices are unknown, by key path."""
    why = {}
    for index, gpu in enumerate(found):
        if gpu.sm_efficiency is None:
            why[f"gpus[{index}].sm_efficiency"] = "no kernel of this device tells its blocks per multiprocessor"
        if gpu.occupancy_pct is None:
            why[f"gpus[{index}].occupancy_pct"] = "no kernel of this device tells its estimated occupancy"
        if gpu.tensor_core_share is None:
            cores = _tensor_cores(known, gpu.id)
            why[f"gpus[{index}].tensor_core_share"] = why_unknown(cores) if cores else "this device ran no kernel"
    if not found and known.times:
        why["gpus"] = "no complete step holds device work"
    return why
