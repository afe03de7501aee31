"""Networks of random size: layers, their operators, and what each kernel costs by batch size, precision and layout."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal, TypeAlias

from tracelock.faults.simulator.machine import Machine

Family: TypeAlias = Literal["gemm", "conv", "pointwise", "reduce"]
Precision: TypeAlias = Literal["fp32", "tf32", "half"]
SHORTEST_US = 1.8  # no kernel of a real trace is much shorter


@dataclass(frozen=True)
class Kernel:
    """One kernel: operations and bytes per sample, and bytes whatever the batch (weights).

    `reaches` is the part of the device's peak that this kernel reaches, which differs from kernel to kernel.
    """

    family: Family
    name: str
    flops: float
    sample_bytes: float
    fixed_bytes: float
    reaches: float

    def microseconds(self, machine: Machine, batch: int, precision: Precision) -> float:
        """Return its duration: the longer of computing and of moving bytes."""
        if self.family in ("gemm", "conv"):
            rates = {"fp32": machine.fp32_tflops, "tf32": machine.tf32_tflops, "half": machine.half_tflops}
            # Tensor cores are harder to feed: real kernels reach about half as much of their peak.
            reached = self.reaches * (1.0 if precision == "fp32" else 0.5)
        else:
            rates, reached = {precision: machine.fp32_tflops}, 0.5
        moved = (self.sample_bytes * batch + self.fixed_bytes) * (0.5 if precision == "half" else 1.0)
        computing = self.flops * batch / (rates[precision] * reached) / 1e6
        return max(SHORTEST_US, computing, moved / (0.75 * machine.memory_gbs) / 1e3)

    def name_in(self, machine: Machine, precision: Precision) -> str:
        """Return the name under which libraries launch it in this precision."""
        if self.family == "gemm":
            return _gemm_name(machine, precision)
        return _conv_name(machine, precision, self.name) if self.family == "conv" else self.name


def _gemm_name(machine: Machine, precision: Precision) -> str:
    if precision == "fp32":
        return {7: "volta_sgemm_128x64_tn", 8: "ampere_sgemm_128x64_tn"}.get(
            machine.capability[0],
            "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4",
        )
    if precision == "tf32":
        return "cutlass_80_tensorop_s1688gemm_128x128_16x5_tn_align4"
    return {
        7: "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_tn",
        8: "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_tn",
    }.get(machine.capability[0], "nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_TNT")


def _conv_name(machine: Machine, precision: Precision, direction: str) -> str:
    if precision == "fp32":
        return {
            "fprop": "void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, true, false, true>",
            "dgrad": "void cudnn::cnn::dgrad2d_alg1_1<float, 0, 6, 7, 5, 4, 5, false, true>",
            "wgrad": "void cudnn::cnn::wgrad_alg0_engine<float, 128, 6, 7, 3, 3, 5, true, 512>",
        }[direction]
    kind = "tf32f32_tf32f32_f32" if precision == "tf32" else "f16f16_f16f32_f32"
    generation = "sm90" if machine.capability[0] >= 9 else "sm80" if machine.capability[0] == 8 else "volta"
    if generation == "volta":
        return f"volta_fp16_s884cudnn_fp16_256x64_ldg8_relu_f2f_exp_small_nhwc_tn_v1_{direction}"
    tile = "tilesize128x128x32_stage4_warpsize2x2x1_tensor16x8x8"
    return f"{generation}_xmma_{direction}_implicit_gemm_{kind}_nhwckrsc_nhwc_{tile}"


@dataclass(frozen=True)
class Op:
    """One operator as autograd and dispatcher see it: names from the outermost inwards, host time, kernels."""

    names: tuple[str, ...]
    host_us: float
    kernels: tuple[Kernel, ...] = ()


@dataclass(frozen=True)
class Layer:
    """Operators of the forward and of the backward pass, and sizes of the parameters in elements."""

    forward: tuple[Op, ...]
    backward: tuple[Op, ...]
    parameters: tuple[int, ...]


@dataclass(frozen=True)
class Network:
    """A model: its kind and its layers."""

    kind: Literal["conv", "transformer", "mlp"]
    layers: tuple[Layer, ...]
    sample_bytes: int  # of one input sample on its way to the device

    @property
    def parameters(self) -> list[int]:
        """Return the size of each parameter in elements."""
        return [size for layer in self.layers for size in layer.parameters]


VECTORIZED = "void at::native::vectorized_elementwise_kernel<4, at::native::{}>"


def _pointwise(name: str, elements: float) -> Kernel:
    return Kernel("pointwise", VECTORIZED.format(name), elements, 12.0 * elements, 0.0, 0.5)


def _norm(name: str, elements: float) -> Kernel:
    return Kernel("reduce", f"void at::native::{name}", 4.0 * elements, 10.0 * elements, 0.0, 0.5)


def _matmul(random: Random, flops: float, weights: int, elements: float) -> Kernel:
    return Kernel("gemm", "gemm", flops, 8.0 * elements, 4.0 * weights, random.uniform(0.6, 0.9))


def _backward(node: str, *inner: tuple[str, Kernel], host_us: float = 14.0) -> Op:
    """Return one node of the backward pass: a row of the engine around the node around its operators."""
    names = (f"autograd::engine::evaluate_function: {node}", node, *(name for name, _ in inner[:1]))
    return Op(names, host_us, tuple(kernel for _, kernel in inner))


def linear(random: Random, inputs: int, outputs: int, rows: int = 1) -> Layer:
    """Return a linear layer with its bias, over `rows` rows a sample, and its activation."""
    weights, elements = inputs * outputs, float(rows * (inputs + outputs))
    flops = 2.0 * rows * weights
    activation = float(rows * outputs)
    forward = (
        Op(("aten::linear", "aten::addmm"), 12.0, (_matmul(random, flops, weights, elements),)),
        Op(
            ("aten::gelu",),
            6.0,
            (_pointwise("GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)", activation),),
        ),
    )
    backward = (
        _backward("GeluBackward0", ("aten::gelu_backward", _pointwise("GeluBackwardCUDAKernelImpl", activation))),
        _backward(
            "AddmmBackward0",
            ("aten::mm", _matmul(random, flops, weights, elements)),
            ("aten::mm", _matmul(random, flops, weights, elements)),
            host_us=24.0,
        ),
        _backward("torch::autograd::AccumulateGrad", host_us=5.0),
    )
    return Layer(forward, backward, (weights, outputs))


def convolution(random: Random, channels: int, side: int) -> Layer:
    """Return a 3 × 3 convolution with batch norm and ReLU on `channels` × `side` × `side`."""
    weights, elements = 9 * channels * channels, float(channels * side * side)
    flops = 2.0 * weights * side * side

    def conv(direction: str) -> Kernel:
        return Kernel("conv", direction, flops, 8.0 * elements, 4.0 * weights, random.uniform(0.5, 0.85))

    names = ("aten::conv2d", "aten::convolution", "aten::_convolution", "aten::cudnn_convolution")
    forward = (
        Op(names, 18.0, (conv("fprop"),)),
        Op(
            ("aten::batch_norm", "aten::_batch_norm_impl_index", "aten::cudnn_batch_norm"),
            16.0,
            (_norm("batch_norm_collect_statistics_kernel", elements),),
        ),
        Op(("aten::relu_", "aten::clamp_min_"), 6.0, (_pointwise("launch_clamp_scalar", elements),)),
    )
    backward = (
        _backward("ReluBackward0", ("aten::threshold_backward", _pointwise("threshold_kernel_impl", elements))),
        _backward(
            "CudnnBatchNormBackward0",
            ("aten::cudnn_batch_norm_backward", _norm("batch_norm_backward_kernel", elements)),
        ),
        _backward(
            "ConvolutionBackward0",
            ("aten::convolution_backward", conv("dgrad")),
            ("aten::convolution_backward", conv("wgrad")),
            host_us=26.0,
        ),
        _backward("torch::autograd::AccumulateGrad", host_us=5.0),
    )
    return Layer(forward, backward, (weights, channels, channels))


def attention(random: Random, width: int, length: int) -> Layer:
    """Return self-attention of `width` over `length` tokens, with its layer norm and projections."""
    weights, tokens = width * width, float(length * width)
    project = 2.0 * length * weights
    mix = 4.0 * length * length * width

    def flash(name: str, factor: float) -> Kernel:
        return Kernel("reduce", f"void pytorch_flash::flash_{name}_kernel", factor * mix, 16.0 * tokens, 0.0, 0.5)

    def gemm(times: int) -> Kernel:
        return _matmul(random, times * project, times * weights, tokens)

    norm = _norm("layer_norm_grad_input_kernel", tokens)
    forward = (
        Op(("aten::layer_norm", "aten::native_layer_norm"), 9.0, (_norm("vectorized_layer_norm_kernel", tokens),)),
        Op(("aten::linear", "aten::addmm"), 12.0, (gemm(3),)),
        Op(("aten::scaled_dot_product_attention", "aten::_flash_attention_forward"), 22.0, (flash("fwd", 0.2),)),
        Op(("aten::linear", "aten::addmm"), 12.0, (gemm(1),)),
        Op(("aten::add",), 5.0, (_pointwise("CUDAFunctor_add<float>", tokens),)),
    )
    backward = (
        _backward("AddmmBackward0", ("aten::mm", gemm(1)), ("aten::mm", gemm(1)), host_us=24.0),
        _backward("ScaledDotProductFlashAttentionBackward0", ("aten::_flash_attention_backward", flash("bwd", 0.5))),
        _backward("AddmmBackward0", ("aten::mm", gemm(3)), ("aten::mm", gemm(3)), host_us=24.0),
        _backward("NativeLayerNormBackward0", ("aten::native_layer_norm_backward", norm)),
        _backward("torch::autograd::AccumulateGrad", host_us=5.0),
    )
    return Layer(forward, backward, (3 * weights, 3 * width, weights, width, width, width))


def draw(random: Random) -> Network:
    """Return a network of random kind and size."""
    kind = random.choice(("conv", "transformer", "mlp"))
    if kind == "conv":
        side = random.choice((14, 28, 56))
        channels = {14: (256, 512), 28: (128, 256), 56: (64, 128)}[side]
        layers = [convolution(random, random.choice(channels), side) for _ in range(random.randint(8, 24))]
        return Network("conv", tuple(layers), 4 * 3 * random.choice((96, 160, 224)) ** 2)
    if kind == "transformer":
        width, length = random.choice((256, 512, 768)), random.choice((64, 128, 256))
        layers = []
        for _ in range(random.randint(3, 8)):
            layers += [
                attention(random, width, length),
                linear(random, width, 4 * width, length),
                linear(random, 4 * width, width, length),
            ]
        return Network("transformer", tuple(layers), 8 * length)
    width = random.choice((1024, 2048, 4096))
    layers = [linear(random, width, width) for _ in range(random.randint(6, 16))]
    return Network("mlp", tuple(layers), 4 * width)
