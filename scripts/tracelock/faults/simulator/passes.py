"""What the host does for a model: forward pass, backward pass, optimizer, each as operators that launch kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from tracelock.faults.simulator.job import Job
from tracelock.faults.simulator.network import Kernel, Layer, Op
from tracelock.faults.simulator.timeline import BACKWARD, COMPUTE, Host

TO_NHWC = "void cudnn::ops::nchwToNhwcKernel<__half, __half, float, false, true, (cudnnKernelDataType_t)0>"
TO_NCHW = "void cudnn::ops::nhwcToNchwKernel<__half, __half, float, true, false, (cudnnKernelDataType_t)0>"
CAST = "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda>"
FUSED = "triton_poi_fused_add_relu_threshold_backward_{}"
FOREACH = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel"
PER_PARAMETER = {
    "SGD": ("aten::mul_", "aten::add_", "aten::add_"),
    "Adam": ("aten::lerp_", "aten::mul_", "aten::addcmul_", "aten::sqrt", "aten::div_", "aten::add_", "aten::addcdiv_"),
}


def kernels_of(job: Job, op: Op) -> list[tuple[str, float]]:
    """Return name and microseconds of each kernel that `op` launches under the job's settings."""
    found = []
    for kernel in op.kernels:
        precision = job.precision(kernel.family)
        duration = kernel.microseconds(job.machine, job.settings.batch_size, precision)
        rows = [(kernel.name_in(job.machine, precision), duration)]
        if kernel.family == "conv" and precision != "fp32" and not job.settings.channels_last:
            rows = [(TO_NHWC, _turned(job, kernel)), *rows, (TO_NCHW, _turned(job, kernel))]
        found += rows
    return found


def _turned(job: Job, kernel: Kernel) -> float:
    """Return the time that turning one operand between layouts takes, microseconds."""
    moved = kernel.sample_bytes * job.settings.batch_size * (0.5 if job.settings.amp != "off" else 1.0)
    return max(1.8, moved / (0.55 * job.machine.memory_gbs) / 1e3)


def _casts(job: Job, op: Op) -> list[tuple[str, float]]:
    """Return the casts of weights that autocast makes before a matrix product or convolution."""
    weights = [kernel.fixed_bytes for kernel in op.kernels if kernel.family in ("gemm", "conv")]
    if job.settings.amp == "off" or not weights or "evaluate_function" in op.names[0]:
        return []
    return [(CAST, max(1.8, 1.5 * weights[0] / (0.75 * job.machine.memory_gbs) / 1e3))]


def fused(kernels: Sequence[tuple[str, float]], ops: Sequence[Op]) -> list[tuple[str, float]]:
    """Return what a compiler makes of a layer: products stay, everything between them becomes one kernel."""
    families = [kernel.family for op in ops for kernel in op.kernels]
    if len(families) != len(kernels):
        return list(kernels)
    kept = [row for row, family in zip(kernels, families, strict=True) if family in ("gemm", "conv")]
    rest = [row[1] for row, family in zip(kernels, families, strict=True) if family not in ("gemm", "conv")]
    return kept + ([(FUSED.format(len(rest)), max(1.8, 0.5 * sum(rest)))] if rest else [])


def run_ops(job: Job, host: Host, ops: Sequence[Op], label: str) -> None:
    """Let the host run `ops`: one by one, or as one call of compiled code."""
    if job.settings.compile:
        kernels = fused([row for op in ops for row in kernels_of(job, op)], ops)
        with host.span(f"{label}: 0/0", "cpu_op"):
            host.work(8.0)
            for name, duration in kernels:
                host.work(1.5)
                host.launch(name, duration)
        return
    for op in ops:
        _run_op(job, host, op)


def _run_op(job: Job, host: Host, op: Op) -> None:
    casts = _casts(job, op)
    part = op.host_us / (len(op.names) + 1)
    with ExitStack() as stack:
        for name in op.names:
            stack.enter_context(host.span(name))
            host.work(part)
            if casts and name == op.names[0]:
                with host.span("aten::to"), host.span("aten::_to_copy"), host.span("aten::copy_"):
                    host.work(9.0)
                    host.launch(*casts[0])
        for name, duration in kernels_of(job, op):
            host.launch(name, duration, **_geometry(host, duration))
        host.work(part)


def _geometry(host: Host, duration: float) -> dict[str, Any]:
    """Return the figures that CUPTI gives of a launch: short kernels tend to be small ones."""
    full = min(1.0, duration / 60.0)
    sms = host.machine.sms
    return {
        "blocks per SM": round(max(1.0, 8 * sms * full) / sms, 6),
        "est. achieved occupancy %": round(12 + 60 * full),
    }


def layer_forward(job: Job, host: Host, layer: Layer) -> None:
    """Run one layer forward."""
    run_ops(job, host, layer.forward, "CompiledFunction")


def layer_backward(job: Job, host: Host, layer: Layer) -> None:
    """Run one layer backward, on the thread of the autograd engine."""
    with host.on(BACKWARD):
        run_ops(job, host, layer.backward, "CompiledFunctionBackward")


def graph(job: Job, layers: Sequence[Layer]) -> list[tuple[str, float]]:
    """Return the kernels of a whole forward and backward pass as a CUDA graph holds them."""
    forward = [row for layer in layers for op in layer.forward for row in kernels_of(job, op)]
    return forward + [row for layer in reversed(layers) for op in layer.backward for row in kernels_of(job, op)]


def optimizer_step(job: Job, host: Host) -> None:
    """Update the parameters: one by one, by multi-tensor operators, or fused."""
    sizes = job.network.parameters
    rate = 0.7 * job.machine.memory_gbs * 1e3  # bytes a microsecond
    moved = 4.0 * (4 if job.optimizer == "SGD" else 7)  # bytes an element: parameter, gradient, state
    with host.span(f"Optimizer.step#{job.optimizer}.step", "user_annotation"):
        host.work(20.0)
        if job.settings.optimizer_fused:
            _multi_tensor(host, "aten::_fused_adam_", sizes, 1, moved * sum(sizes) / rate)
        elif job.settings.optimizer_foreach:
            _multi_tensor(
                host,
                "aten::_foreach_addcdiv_",
                sizes,
                len(PER_PARAMETER[job.optimizer]),
                1.6 * moved * sum(sizes) / rate,
            )
        else:
            for size in sizes:
                _one_parameter(job, host, size, rate)


def _multi_tensor(host: Host, name: str, sizes: Sequence[int], operators: int, total_us: float) -> None:
    chunks = math.ceil(len(sizes) / 48)
    for _ in range(operators):
        with host.span(name):
            host.work(8.0 + 0.4 * len(sizes))
            for _ in range(chunks):
                host.launch(FOREACH, max(2.0, total_us / operators / chunks))


def _one_parameter(job: Job, host: Host, size: int, rate: float) -> None:
    for name in PER_PARAMETER[job.optimizer]:
        with host.span(name):
            host.work(4.0)
            host.launch(
                "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >",
                max(1.8, 12.0 * size / rate),
                COMPUTE,
            )
