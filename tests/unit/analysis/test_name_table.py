"""Names of kernels as programs give them: what communicates, what computes on tensor cores, what does not say."""

from __future__ import annotations

import re

import pytest
from builders import kernel, launch, make_trace, op, step

from tracelock.analysis import analyze
from tracelock.analysis.name_table import TABLE, Use
from tracelock.analysis.names import is_collective_call, is_collective_kernel
from tracelock.analysis.tensor_cores import uses_tensor_cores

COMMUNICATION = """
ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)
ncclDevKernel_AllGather_RING_LL(ncclDevComm*, unsigned long, ncclWork*)
ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)
ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)
ncclSymDevKernel_AllReduce_RSxLD_AGxST_sum_bf16(ncclSymDevArgs)
ncclSymDevKernel_ReduceScatter_LL_sum_f8e4m3(ncclSymDevArgs)
void rcclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)
hcom_allReduce__023_0_1
mscclKernel_Sum_half_Simple_false(ncclDevComm*, mscclAlgo*, mscclWork*)
mscclKernel_Sum_hip_bfloat16_Simple
void mscclpp::collective::allreducePacket<__half>(mscclpp::MemoryChannel*)
void executionKernel<__half, mscclpp::LL16Packet, false>(int, __half*, __half*)
allreduceNvls
oneccl_allreduce_pcie
void ccl::allreduce_kernel<float>(float*)
void dpsk::ep::internode::combine<false, 4, __nv_bfloat16, 4, 4, 16, 24>(int4*, float*, bool const*)
void dpsk::ep::internode::dispatch<false, 8, true, 8>(int4*, float*, long*)
void dpsk::ep::internode::cached_notify<false>(int, int, int, int, int*, int)
void dpsk::ep::internode::notify_dispatch<false, 8>(int const*, int*, int)
void dpsk::ep::internode::dispatch_ll<true, 3, 10, 7168>(void*, float*, int*, long*)
void dpsk::ep::internode::combine_ll<3, 10, 7168, 9>(void*, void*, int*, void*)
void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*, int*, long*, float*)
void deep_ep::intranode::combine<__nv_bfloat16, (int)8, (int)768>(__nv_bfloat16*)
void deep_ep::intranode::cached_notify_combine<(int)8>(void **, int *, int, int)
void deep_ep::internode_ll::dispatch<true, false, 7168>(void*, void*)
_ZN7deep_ep9internode15notify_dispatchILb0ELi2EEEvPKi
void primus_turbo::deep_ep::intranode::cached_notify_dispatch<8>(int const*, int)
void hybrid_ep::dispatch_kernel<int, 8>(hybrid_ep::dispatch_kernel_param_t<unsigned char>)
hybrid_ep::device_sync_kernel(unsigned int*, unsigned int*)
EpDispatchInterNodeV1KernelLowLatency_bf16
void mori::moe::EpCombineIntraNodeKernel<hip_bfloat16>(mori::moe::EpDispatchCombineArgs<hip_bfloat16>)
void a2a_dispatch_send_kernel<true, 16, 8>(unsigned long, unsigned long)
a2a_combine_recv_kernel
dlslime::intranode_alltoall_kernel
void barrier_on_stream_kernel_threadgroup<(threadgroup_t)1>(int, int)
sync_all_on_stream_kernel_warp()
void alltoall_on_stream_kernel<float, (threadgroup_t)2>(int, float*, float const*, unsigned long)
nvshmemi_proxy_rma_entrypoint_blocking(void*, void*, rma_bytesdesc, unsigned long, int)
void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, vllm::RankSignals)
void sglang::cross_device_reduce_2stage<__half, 8>(sglang::RankData*, sglang::RankSignals)
void aiter::cross_device_reduce_2stage<__hip_bfloat16, 8, false>(aiter::RankData*)
void aiter::reduce_scatter_cross_device_store<__hip_bfloat16, 8>(aiter::RankData*)
void aiter::allgather_lastdim<__hip_bfloat16, 8>(aiter::RankData*)
void quickreduce::allreduce_prototype_twoshot<AllReduceTwoshot<__half, CodecQ4<__half, 8>, true>, __half>
void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*, unsigned long)
void (anonymous namespace)::multimem_one_shot_all_reduce_kernel<float, 16>(float*, float*)
void (anonymous namespace)::multimem_all_gather_kernel<16>(char*, char*)
void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, 2>(c10::BFloat16**, unsigned long)
void (anonymous namespace)::one_shot_all_reduce_kernel<c10::BFloat16, 16, 8>(c10::BFloat16**)
void c10d::intra_node_comm::hybridCubeMeshAllReduceKernel<8, false>(unsigned long)
void inkling_two_shot_all_reduce_kernel<__nv_bfloat16, 4u>(void* const*, unsigned int)
void tensorrt_llm::kernels::oneShotAllReduceKernel<__half, 8, true, false>(tensorrt_llm::kernels::AllReduceParams)
void tensorrt_llm::kernels::lowPrecisionTwoShotAllReduceKernel<__nv_bfloat16, 8>(LowPrecisionAllReduceParams)
void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<1, __half, 8>(int)
void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_twoshot_sync<1, __nv_bfloat16, 8, false>(int)
void flashinfer::trtllm_mnnvl_allreduce::twoshotAllreduceKernel<(unsigned char)2, __nv_bfloat16, true>(int)
void tensorrt_llm::kernels::moe_alltoall::moeA2ADispatchKernel<8>(int const*)
moeA2ACombineKernel
void userbuffers_fp16_sum_inplace_gpu_rw_ag<2>(int, int, int, int, int, int, int, void**, int, unsigned long)
void userbuffers_fp16_sum_inplace_gpu_rr_rs<2>(int, int, int)
void ucc_ec_cuda_executor_kernel<true>(ucc_ec_cuda_executor_t*, int)
my_lab::fast_all_to_all<float>(float*)
""".strip().splitlines()

NOT_COMMUNICATION = """
triton_poi_fused_add_all_reduce_4
triton_red_fused_all_gather_into_tensor_native_layer_norm_2
void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float>>>(int)
void softmax_block_all_reduce_kernel<float>(float*)
void fastertransformer::blockReduceSum<float>(float)
void warpAllReduceKernel<float>(float*)
void deep_ep::layout::get_dispatch_layout<256, 4, 8>(long const*, int*)
void c10d::checkForNaN<float>(float*, unsigned long)
void cutlass::device_kernel<dpsk::grouped_gemm::cuda::m_grouped_fp8_ptp128c::GemmKernel>(Params)
void at::native::vectorized_gather_kernel<16, long>(char*, char*)
void at::native::_scatter_gather_elementwise_kernel<128, 8>(int)
void vllm::cp_gather_cache<__nv_bfloat16>(int)
dispatch_rows
cublasLt::splitKreduce_kernel
""".strip().splitlines()

TENSOR_CORES = """
void cutlass::device_kernel<dpsk::grouped_gemm::cuda::m_grouped_fp8_ptp128c::GemmKernel>(Params)
void deep_gemm::sm90_fp8_gemm_1d2d_impl<(cute::UMMA::Major)0, 0u, 4096u, 8192u, 1u, 256u>(float*)
void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 7168u, 2048u>(float*)
void deep_gemm::fp8_gemm_kernel<7168u, 2048u, 128u>(__nv_bfloat16*)
deep_gemm::sm100_fp8_fp4_gemm
bmm_E4m3_E4m3E4m3_Fp32_t128x64x128u2_s6_et64x64_m64x64x32_c1x1x1_rM_TN_transOut_noShfl_dsFp8_sm100f
bmm_Bfloat16_E4m3E4m3_Fp32_t128x16x128_s6_et64x16_m64x16x32_c1x1x1_rM_TN_transOut_noShfl
nvjet_sm100_tst_32x64_64x16_4x1_v_bz_splitK_bias_TNN
nvjet_hsh_32x64_64x16_4x1_v_bz_splitK_TNN
void cutlass::device_kernel<enable_sm120_family<GemmUniversal<cute::tuple<int>, CollectiveMma<int>>>>(int)
void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_64x3_tn_align8>(T1::Params)
void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_tn_align8>(Params)
void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<MainloopFwdSm90<2>>>>(int)
void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnBwdSm90<flash::CollectiveMainloopBwdSm90<2>>>>(int)
void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, cutlass::bfloat16_t>>(Flash_fwd_params)
void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<64, 128, 128, 8>>(Flash_bwd_params)
flash::FlashAttentionForwardSm100
void flash_fwd_splitkv_mla_kernel<Flash_fwd_kernel_traits_mla<576, 64, 64, 8>>(Flash_fwd_mla_params)
void flashinfer::BatchPrefillWithRaggedKVCacheKernel<flashinfer::KernelTraits<(flashinfer::MaskMode)1, 128u, 2u>>(int)
void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<(flashinfer::MaskMode)0, 16u>>(int)
fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKvCausalP64MultiCtasKvVarSeqQ128Kv128StaticSwapsAbForGen
fmha_cutlassF_f16_aligned_64x128_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::half_t>::Params)
fmha_cutlassB_bf16_aligned_128x128_k128_sm80
cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16_knob_3_64x64x128_4x1x1_kernel0_0
cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_64x64x128_1x1x1
sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_warpgroupsize1x1x1
sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16_stage4
cudnn_ampere_hmma16816_tn
turing_fp16_s1688cudnn_fp16_128x128_ldg8_relu_f2f_exp_small_nhwc_tn_v1
void marlin_moe_wna16::Marlin<1125899906909960l, 562949953487106l, 1125899906909960l>(int4 const*)
Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x256x64_MI16x16x1_SN_LDSB1
Custom_Cijk_Alik_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_MT64x16x64_MI16x16x1_SN_LDSB0
Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1_SN_1LDSB0_APM1
void ck::kernel_gemm_xdl_cshuffle_v3<ck::GridwiseGemmMultiD_ABScale_xdl_cshuffle_v3<int>, true>(int)
_ZN2ck59kernel_gemm_xdl_cshuffle_v3_multi_d_blockscale_b_preshuffleINS_58GridwiseGemm
void ck_tile::kentry<1, ck_tile::GroupedGemmKernel<ck_tile::GemmSpatiallyLocalTilePartitioner<int>>>(int)
void ck_tile::kentry<256, 1, ck_tile::FmhaBwdDQDKDVKernel<int>>(int)
aiter::fmha_fwd_hd128_bf16_causal_group
mfma_moe1_silu_mul_afp8_wfp4
""".strip().splitlines()

WITHOUT = """
ampere_sgemm_128x64_tn
cudnn_infer_ampere_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1
void cutlass::Kernel2<cutlass_80_simt_sgemm_128x128_8x4_nt_align1>(Params)
cutlass3x_sm100_simt_sgemm_f32_f32_f32_f32_f32_128x64x16_1x1x1_3_tnn_align1_bias_f32_relu
void gemv2T_kernel_val<int, int, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, 128, 16, 4>(int)
void flash::prepare_varlen_num_blocks_kernel<1, true>(int, int)
void cutlass::device_kernel<flash::FlashAttnFwdCombine<cute::tuple<int>, 128>>(int)
void flashinfer::norm::RMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*)
void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)
void per_token_group_quant_8bit_kernel<__nv_bfloat16, c10::Float8_e4m3fn>(int)
void at::native::vectorized_elementwise_kernel<8, at::native::FillFunctor<c10::BFloat16>>(int)
_layer_norm_kernel
silu_and_mul_kernel
void ck_tile::kentry<1, ck_tile::Rmsnorm2dFwd<ck_tile::Rmsnorm2dFwdPipelineOnePass<int>>>(int)
Cijk_Ailk_Bljk_SB_MT64x64x16_SN_1LDSB0
void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*)
""".strip().splitlines()

UNTOLD = """
fused_moe_kernel
_w8a8_triton_block_scaled_mm
_w8a8_block_fp8_matmul
kernel_unified_attention_2d
_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu
chunk_gated_delta_rule_fwd_kernel_h_blockdim64
_chunk_scan_fwd_kernel
triton_tem_fused_mm_t_0
triton_mm
_fwd_kernel_0d1d2d3de4de
void my_lab::best_gemm<float>(float*)
Custom_Cijk_Alik_Bljk_F8BS_shortname0
""".strip().splitlines()


@pytest.mark.parametrize("name", COMMUNICATION)
def test_these_move_data_between_devices(name: str) -> None:
    assert is_collective_kernel(name)
    assert uses_tensor_cores(name) is False


@pytest.mark.parametrize("name", NOT_COMMUNICATION)
def test_these_move_nothing_between_devices(name: str) -> None:
    assert not is_collective_kernel(name)


@pytest.mark.parametrize("name", TENSOR_CORES)
def test_these_compute_on_tensor_cores(name: str) -> None:
    assert uses_tensor_cores(name) is True
    assert not is_collective_kernel(name)


@pytest.mark.parametrize("name", WITHOUT)
def test_these_do_not(name: str) -> None:
    assert uses_tensor_cores(name) is False


@pytest.mark.parametrize("name", UNTOLD)
def test_these_do_not_say(name: str) -> None:
    assert uses_tensor_cores(name) is None


@pytest.mark.parametrize("name", ["nccl:all_reduce", "gloo:broadcast", "mpi:all_gather", "ucc:alltoall", "xccl:send"])
def test_labels_of_the_host(name: str) -> None:
    assert is_collective_call(name)


def test_each_entry_has_a_source_and_holds_for_a_name_above() -> None:
    """An entry that no known name needs is one that nobody has seen."""
    names = [*COMMUNICATION, *NOT_COMMUNICATION, *TENSOR_CORES, *WITHOUT, *UNTOLD]
    assert all(entry.source for entry in TABLE)
    unseen = [entry.source for entry in TABLE if not any(entry.pattern.search(name) for name in names)]
    assert len(unseen) <= len(TABLE) // 4, unseen
    assert not any(re.fullmatch(entry.pattern, "") for entry in TABLE)
    assert {entry.use for entry in TABLE} == set(Use)


def test_a_step_of_experts_on_two_streams() -> None:
    """Exchange on a stream of its own: 60 ns beside products, 40 ns alone; products on tensor cores all the time."""
    gemm = "void cutlass::device_kernel<dpsk::grouped_gemm::cuda::m_grouped_fp8_ptp128c::GemmKernel>(Params)"
    host = [step(1, 0, 300), op("deep_ep", 1, 20), launch(2, 5, 1), launch(10, 5, 2), launch(17, 2, 3)]
    device = [
        kernel("void dpsk::ep::internode::dispatch<false, 8, true, 8>(int4*)", 100, 60, correlation=1, stream=16),
        kernel("void dpsk::ep::internode::cached_notify<false>(int)", 160, 40, correlation=3, stream=16),
        kernel(gemm, 40, 120, correlation=2, stream=7),
    ]
    found = analyze(make_trace(host, device))
    (gpu,) = found.gpus
    assert (gpu.communication_us, gpu.compute_us, gpu.exposed_communication_us) == (0.1, 0.12, 0.04)
    assert gpu.tensor_core_share == pytest.approx(120 / 220)


@pytest.mark.parametrize(("untold", "share"), [(0, 0.2), (9, 20 / 109), (12, None)])
def test_a_share_is_not_told_where_too_many_names_do_not_say(untold: int, share: float | None) -> None:
    device = [
        kernel("nvjet_tst_128x256_64x4_2x1_v_bz_TNT", 10, 20, correlation=1),
        kernel("void at::native::vectorized_elementwise_kernel<4>(int)", 40, 80, correlation=1),
        *([kernel("fused_moe_kernel", 200, untold, correlation=1)] if untold else []),
    ]
    found = analyze(make_trace([step(1, 0, 300), op("aten::mm", 1, 9), launch(2, 5, 1)], device))
    assert found.gpus[0].tensor_core_share == pytest.approx(share)
    assert ("gpus[0].tensor_core_share" in found.unknown) == (share is None)
    assert found.tensor_cores is not None
    assert found.tensor_cores.used_share == pytest.approx(share)
