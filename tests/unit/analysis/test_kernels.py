"""Kernels by name and by operator; tensor cores."""

from __future__ import annotations

import pytest
from builders import kernel, launch, make_trace, memcpy, op
from hypothesis import given
from strategies import traces

from tracelock.analysis import analyze
from tracelock.analysis.model import KernelOfOperator, TensorCores
from tracelock.analysis.tensor_cores import is_eligible, uses_tensor_cores
from tracelock.trace.columns import DeviceKind, Trace


def test_by_name_and_by_operator() -> None:
    host = [op("aten::mm", 0, 10), launch(1, 2, 1), op("aten::add", 20, 10), launch(21, 2, 2)]
    device = [
        kernel("gemm", 30, 5, correlation=1),
        kernel("gemm", 40, 9, correlation=2),
        kernel("lost", 50, 7, correlation=3),
        memcpy("DtoD", 60, 90, correlation=2),
    ]
    found = analyze(make_trace(host, device))
    gemm, lost = found.kernels
    assert (gemm.name, gemm.calls, gemm.total_us, gemm.mean_us, gemm.min_us, gemm.max_us) == (
        "gemm",
        2,
        0.014,
        0.007,
        0.005,
        0.009,
    )
    assert lost.name == "lost"
    assert found.kernels_by_operator == (
        KernelOfOperator("gemm", "aten::add", 1, 0.009),
        KernelOfOperator("lost", None, 1, 0.007),
        KernelOfOperator("gemm", "aten::mm", 1, 0.005),
    )


@pytest.mark.parametrize(
    "name",
    [
        "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn",
        "turing_h1688gemm_256x128_ldg8_stages_32x1_tn",
        "ampere_fp16_s16816gemm_fp16_64x64_sliced1x2_ldg8_f2f_stages_64x5_tn",
        "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn",
        "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4>(Params)",
        "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize64x128x32_stage5_cudnn_infer",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel",
        "nvjet_hsh_192x128_64x5_1x2_h_bz_coopA_NTT",
        "nvjet_tst_128x256_64x4_2x1_v_bz_TNT",
        "nvjet_qqtst_128x128_128x6_1x1_h_bz_coopA_TNT",
        "void cutlass::device_kernel<at::cuda::detail::enable_3x_kernel_for_sm9x<cutlass::gemm::kernel::GemmUniversal<"
        "cute::tuple<int>, cutlass::gemm::collective::CollectiveMma<cutlass::gemm::MainloopSm90TmaGmmaWarpSpecialized>",
        "cutlass3x_sm100_tensorop_s256x256x16gemm_bf16_bf16_f32_void_bf16_256x256x64_4x4x1_0_tnn",
        "kernel_cutlass_tcgen05_umma_gemm",
        "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4>>(Params)",
        "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::bfloat16_t>)",
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_kernel0_0",
        "Cijk_Ailk_Bljk_BBS_BH_MT64x64x64_MI16x16x16x1_SN_1LDSB0_APM1",
        "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x128x32_wt32x32x8_ws1x1_wr2x2",
        "_ZN2ck16tensor_operation6device37kernel_batched_gemm_xdlops_bwd_weight",
    ],
)
def test_names_of_tensor_core_kernels(name: str) -> None:
    assert uses_tensor_cores(name) is True


@pytest.mark.parametrize(
    "name",
    [
        "volta_sgemm_128x32_nt",
        "ampere_sgemm_64x32_sliced1x4_tn",
        "void cutlass::Kernel<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(Params)",
        "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4_alignc4",
        "void gemmSN_TN_kernel<float, 128, 16, 2, 4, 8, 9, false>(Params)",
        "void implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3, 5, 1, false, true, true>(int)",
        "volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1",
        "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>(int)",
        "SubTensorOpWithScalar1d",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)",
        "Cijk_Ailk_Bljk_SB_MT64x64x16_SN_1LDSB0",
        "triton_poi_fused_add_relu_0",
        "triton_red_fused_native_layer_norm_1",
    ],
)
def test_names_of_other_kernels(name: str) -> None:
    assert uses_tensor_cores(name) is False


@pytest.mark.parametrize("name", ["triton_tem_fused_mm_0", "matmul_kernel", "_fwd_kernel_0d1d2d3de"])
def test_names_that_do_not_say(name: str) -> None:
    assert uses_tensor_cores(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "aten::mm",
        "aten::addmm",
        "aten::bmm",
        "aten::linear",
        "aten::cudnn_convolution",
        "aten::cudnn_convolution_backward_weight",
        "aten::miopen_convolution",
        "aten::convolution_backward",
        "aten::conv2d",
        "aten::_scaled_mm",
        "aten::_flash_attention_forward",
        "aten::_scaled_dot_product_efficient_attention_backward",
        "aten::_cudnn_rnn",
    ],
)
def test_eligible_operators(name: str) -> None:
    assert is_eligible(name)


@pytest.mark.parametrize("name", ["aten::add", "aten::relu", "aten::native_layer_norm", "aten::mm_fancy", "mm"])
def test_other_operators(name: str) -> None:
    assert not is_eligible(name)


def test_shares_of_tensor_cores() -> None:
    host = [op("aten::linear", 0, 20), op("aten::addmm", 2, 10), launch(3, 2, 1), launch(6, 2, 2), launch(30, 1, 3)]
    device = [
        kernel("volta_sgemm_128x32_nt", 40, 30, correlation=1),
        kernel("volta_h884gemm", 80, 10, correlation=2),
        kernel("triton_tem_fused_mm_0", 95, 20, correlation=3),
        kernel("elementwise", 120, 40, correlation=4),
    ]
    assert analyze(make_trace(host, device)).tensor_cores == TensorCores(None, 0.2, 0.4, 0.25)
    assert analyze(make_trace(host[:0], device)).tensor_cores == TensorCores(None, 0.2, None, None)
    assert analyze(make_trace(host)).tensor_cores is None


@given(traces())
def test_kernels_add_up(trace: Trace) -> None:
    found, rows = analyze(trace), trace.device
    kernels = rows.kind == DeviceKind.KERNEL
    assert sum(kernel.calls for kernel in found.kernels) == int(kernels.sum())
    assert sum(round(kernel.total_us * 1000) for kernel in found.kernels) == int(rows.duration[kernels].sum())
    for one in found.kernels:
        mine = [
            int(rows.duration[row])
            for row in range(len(rows))
            if kernels[row] and trace.texts[rows.name[row]] == one.name
        ]
        assert (one.calls, one.min_us, one.max_us) == (len(mine), min(mine) / 1000, max(mine) / 1000)
        owned = [each for each in found.kernels_by_operator if each.kernel == one.name]
        assert sum(each.calls for each in owned) == one.calls
