"""Machines that a job can run on: what a kernel, a copy, a launch and a wait cost there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

GIB = 2**30


@dataclass(frozen=True)
class Machine:
    """One accelerator and its host. Rates are peaks; what kernels reach of them is a matter of the network.

    Rates: TFLOP/s (10^12 operations a second), GB/s (10^9 bytes a second). Times: microseconds.
    """

    name: str
    capability: tuple[int, int]
    sms: int
    memory_bytes: int
    fp32_tflops: float
    tf32_tflops: float  # that of fp32 where the device has no TF32
    half_tflops: float
    memory_gbs: float
    pageable_gbs: float
    pinned_gbs: float
    network_gbs: float  # bus bandwidth of an all-reduce
    launch_us: float = 5.0  # the host's time in a launch call
    latency_us: float = 3.0  # from the end of the call to the start on an idle stream
    gap_us: float = 1.0  # between kernels that wait in one stream
    queue_depth: int = 1024  # launches that may wait before the next call blocks
    host_speed: float = 1.0  # of the processor: divides every host time
    noise: float = 0.08  # sigma of the logarithm of every host time
    cores: int = 16


V100 = Machine("Tesla V100-SXM2-16GB", (7, 0), 80, 16 * GIB, 15.7, 15.7, 125.0, 900.0, 5.0, 12.0, 60.0)
A100 = Machine("NVIDIA A100-SXM4-80GB", (8, 0), 108, 80 * GIB, 19.5, 156.0, 312.0, 2000.0, 6.5, 24.0, 180.0)
H100 = Machine("NVIDIA H100 80GB HBM3", (9, 0), 132, 80 * GIB, 67.0, 494.0, 989.0, 3350.0, 8.0, 52.0, 350.0)
MODELS = (V100, A100, H100)


def draw(random: Random, models: tuple[Machine, ...] = MODELS) -> Machine:
    """Return one of `models` with its own host speed, noise, launch cost and links."""
    model = random.choice(models)

    def about(value: float, spread: float) -> float:
        return value * random.uniform(1 - spread, 1 + spread)

    return replace(
        model,
        pageable_gbs=about(model.pageable_gbs, 0.3),
        pinned_gbs=about(model.pinned_gbs, 0.1),
        network_gbs=about(model.network_gbs, 0.3),
        launch_us=about(5.0, 0.4),
        latency_us=about(3.0, 0.5),
        gap_us=about(1.0, 0.4),
        host_speed=random.uniform(0.7, 1.5),
        noise=random.uniform(0.02, 0.2),
        cores=random.choice((8, 16, 32, 64)),
    )
