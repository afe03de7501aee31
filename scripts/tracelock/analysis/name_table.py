"""The one table of names: which kernels communicate, and which compute on tensor cores.

To add a kernel, add a line: what it is, a regular expression, and where the name was found. Lines of one `Use` that
hold are asked in order, and the first that is found anywhere in the name decides; so exceptions stand before rules.
Mangled names (``_ZN7deep_ep9internode…``) and demangled ones are both met in traces. A name that no line knows is told
nothing of: see `tensor_cores.uses_tensor_cores`.
"""

from __future__ import annotations

import enum
import functools
import re
from typing import Final, NamedTuple


class Use(enum.Enum):
    """What an entry says of the kernels that it names."""

    COMMUNICATION = "moves data between devices"
    LOCAL = "has a word of communication in its name, and moves nothing"
    TENSOR_CORES = "computes on tensor or matrix cores"
    VECTOR = "multiplies or convolves without them"
    NO_PRODUCT = "multiplies no matrices"
    UNTOLD = "may compute on tensor cores: its name does not say"


class Entry(NamedTuple):
    """Names of one origin."""

    use: Use
    pattern: re.Pattern[str]
    source: str  # the program that gives them, and where it does


def _entry(use: Use, source: str, pattern: str) -> Entry:
    return Entry(use, re.compile(pattern), source)


_OWN_NAME = r"^(?:void )?(?:[^<(]*::)?[^<(:]*"  # a word in the function's own name, not in its arguments

TABLE: Final[tuple[Entry, ...]] = (
    # What looks like communication, and is not.
    _entry(Use.LOCAL, "Inductor: a fused kernel is named after its neighbours, too", r"^triton_(poi|red|per|tem)_"),
    _entry(
        Use.LOCAL,
        "reductions inside one device (cub, FasterTransformer)",
        r"(?i)(block|warp|lane|thread|wave)_?(all)?_?reduce",
    ),
    _entry(
        Use.LOCAL, "DeepEP csrc/kernels/layout.cu: counts tokens, sends none", r"ep(::|\d+)layout|get_dispatch_layout"
    ),
    _entry(Use.LOCAL, "torch NanCheck.cu: looks at the buffer before the collective", r"(?i)check_?for_?nan"),
    # Collectives and transfers.
    _entry(
        Use.COMMUNICATION,
        "NCCL and RCCL: ncclKernel_, ncclDevKernel_, ncclSymDevKernel_, ncclSymkDevKernel_",
        r"(?i)[nr]ccl(?!udes)",
    ),
    _entry(
        Use.COMMUNICATION,
        "vendors' NCCLs: Huawei, Intel, Cambricon, MUSA; FlagCX; UCCL",
        r"(?i)hccl|hcom_|xccl|oneccl|cncl|flagcx|\bmccl|pcclKernel|uccl",
    ),
    _entry(
        Use.COMMUNICATION,
        "oneCCL: SYCL kernels, low-latency protocols",
        r"\bccl::|_ZN(?:\d+oneapi)?3ccl|\bRt(64|128|64_128)_\w*PCIE",
    ),
    _entry(
        Use.COMMUNICATION,
        "MSCCL and MSCCL++: execution_kernel.hpp, collectives/",
        r"(?i)msccl|executionKernel<.*Packet|\ballreduce(?:\d|Nvls|AllPairs"
        r"|AllToAll|Packet|RsAg)\w*",
    ),
    _entry(
        Use.COMMUNICATION,
        "DeepEP csrc/kernels; deepseek-ai/profile-data",
        r"(?:\b|_|deep_)ep::(intranode|internode|elastic|hybrid|legacy)"
        r"|ep\d+(intranode|internode)",
    ),
    _entry(
        Use.COMMUNICATION,
        "DeepEP hybrid-ep branch; notify kernels without namespace",
        r"hybrid_ep::|hybrid_ep\d+(dispatch|combine|device_sync)|\bcached_notify\w*"
        r"|\bnotify_(dispatch|combine)\b",
    ),
    _entry(Use.COMMUNICATION, "ROCm MORI: src/ops/dispatch_combine", r"\bEp(Dispatch|Combine)\w*|\bmori::"),
    _entry(
        Use.COMMUNICATION,
        "Perplexity pplx-kernels, p2p-all-to-all",
        r"a2a_(dispatch|combine)_(send|recv)_kernel|pplx::",
    ),
    _entry(
        Use.COMMUNICATION,
        "NVSHMEM, rocSHMEM, Intel SHMEM: nvshmemi_h_to_d_coll_defs.cuh",
        r"(?i)n?(nv|roc|i)shmem|(barrier|sync|sync_all|barrier_all|broadcast"
        r"|fcollect|alltoall|reducescatter|rdxn|put|get|signal)\w*_on_stream_kernel",
    ),
    _entry(
        Use.COMMUNICATION,
        "vLLM, SGLang custom_all_reduce.cuh; AITER custom_collective_common.cuh",
        r"cross_device_reduce|cross_device_store",
    ),
    _entry(
        Use.COMMUNICATION,
        "QuickReduce (vLLM, SGLang, AITER on ROCm)",
        r"quickreduce::|allreduce_prototype_(one|two)shot",
    ),
    _entry(Use.COMMUNICATION, "AITER custom all-gather", r"\ballgather_(lastdim|naive|vec)\w*"),
    _entry(
        Use.COMMUNICATION,
        "torch symm_mem: CUDASymmetricMemoryOps.cu",
        r"multimem_(one_shot_)?(all_reduce|all_gather|reduce_scatter)|(one"
        r"|two)_shot_(all_reduce|reduce_scatter|all_gather)",
    ),
    _entry(
        Use.COMMUNICATION,
        "torch symm_mem: CUDASymmetricMemory.cu, nvshmem_extension.cu",
        r"\b(put|wait)_signal_kernel|\bbarrier_kernel\(unsigned int\*\*"
        r"|\ballToAllV|exchangeSplitAndOffset|(multi_root_)?tile_reduce_kernel",
    ),
    _entry(
        Use.COMMUNICATION,
        "TensorRT-LLM customAllReduceKernels.cu; torch intra_node_comm",
        r"(?i)(one|two)_?shot_?all_?reduce|hybridCubeMeshAllReduce|lowPrecision(One"
        r"|Two)Shot",
    ),
    _entry(
        Use.COMMUNICATION,
        "TensorRT-LLM, FlashInfer: trtllm_allreduce_fusion.cuh, trtllm_mnnvl_allreduce.cuh",
        r"allreduce_fusion_kernel|trtllm_(mnnvl_)?allreduce|moereduction_allreduce"
        r"|moefinalize_allreduce|rmsNormLamport",
    ),
    _entry(
        Use.COMMUNICATION,
        "TensorRT-LLM, FlashInfer: moeAlltoAllKernels.cu",
        r"moeA2A\w*Kernel|moeAllToAll\w*|moe_comm::",
    ),
    _entry(Use.COMMUNICATION, "Transformer Engine: userbuffers.cu", r"userbuffers_|kuserbuffers_"),
    _entry(
        Use.COMMUNICATION,
        "UCC ec_cuda, UCX device code",
        r"\bucc_|\bucc::|executor_(start|shutdown)_kernel|\bu(cp|ct)_\w+"
        r"|\bucx_",
    ),
    _entry(Use.COMMUNICATION, "gloo and MPI, where they run kernels at all", r"(?i)\bgloo::|\bmpi_|\bMPIX?_"),
    _entry(
        Use.COMMUNICATION,
        "the words of the field, whoever wrote the kernel",
        r"(?i)" + _OWN_NAME + r"(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|all2all)",
    ),
    # Products and convolutions without tensor cores.
    _entry(
        Use.VECTOR,
        "cuBLAS: plain single and double precision",
        r"xmma_gemm_f32f32_f32f32_f32|xmma_\w*f64f64(?!\w*tensor)",
    ),
    _entry(
        Use.VECTOR,
        "cuBLAS, CUTLASS, cuDNN: SIMT; matrix by vector",
        r"^(?!.*(tensorop|tf32|[hs]884|1688|168(16|08)|_MI\d+|[wb]mma|nvjet)).*"
        r"([Ss][Ii][Mm][Tt]|sgemm|dgemm|[cz]gemm|ffma|gemv|GEMV|gemmSN|gemmk1|convolve_sgemm|_scudnn_)",
    ),
    _entry(
        Use.TENSOR_CORES,
        "cuBLAS, cuDNN, CUTLASS 2: instruction shapes from Volta to Ada",
        r"[hsdiz]884|[hsic]1688|[hsiq]?168(08|16|32|64)|88128|i8816|[hiqbd]mma(?!p)"
        r"|wgmma",
    ),
    _entry(
        Use.TENSOR_CORES,
        "CUTLASS 3: device_kernel<…Mma…>; Hopper, Blackwell",
        r"[Gg]mma|[Uu]mma|tcgen05|[Ww]arp_?[Ss]pecialized|warpgroup|CollectiveMma"
        r"|Mainloop\w*Sm\d+",
    ),
    _entry(
        Use.TENSOR_CORES,
        "CUTLASS: operator classes and atoms",
        r"(?<![a-z])tensorop|tensor_op_|OpClassTensorOp|MmaTensorOp|SM\d+_\d+x\d+x\d+_\w*(TN"
        r"|MMA)",
    ),
    _entry(
        Use.TENSOR_CORES,
        "cuBLAS from 12 on",
        r"nvjet|cutlass3x_sm(90|100|103|120)|cutlass_sm(90|100|120)|sm(90"
        r"|100|103|120)_xmma",
    ),
    _entry(
        Use.TENSOR_CORES,
        "cuDNN v8 and v9 engines (xmma), cuBLAS",
        r"tensor16x8x|_tensor8x8x|xmma_(gemm|implicit_gemm|sparse|warp|conv"
        r"|fprop|dgrad|wgrad)|tf32f32|bf16bf16_bf16|f16f16_f16",
    ),
    _entry(
        Use.TENSOR_CORES,
        "grouped and FP8 products: DeepGEMM, deepseek-ai/profile-data",
        r"cutlass::float_(e\dm\d|ue\dm\d)|(?<![a-z])(e4m3|e5m2|e2m1)(?!fn?\w*quant)(?=\w*(gemm|mma|_f32|_tn|_nn|_nt))"
        r"|_fp8_(fp4_)?gemm|fp8_(bmm|mqa|gemm)|grouped_gemm::|m_grouped_\w*(fp8"
        r"|bf16|gemm)|k_grouped_",
    ),
    _entry(
        Use.TENSOR_CORES,
        "DeepGEMM; TensorRT-LLM generated batched products",
        r"deep_gemm|sm(90|100|120)\w*_gemm_\w*impl|(?:\b|_)[bg](m|em)m_\w*(E4m3"
        r"|E2m1|Bfloat16|Fp16|E5m2)",
    ),
    _entry(
        Use.TENSOR_CORES,
        "FlashAttention 2, 3, 4",
        r"[Ff]lash_(fwd|bwd|attn)|flashattn|FlashAttn(Fwd|Bwd)(?!Combine"
        r"|Pre|Post)Sm\d+|flash::(fwd|bwd)|FlashAttention(Forward|Backward)Sm\d+"
        r"|compute_attn_ws",
    ),
    _entry(
        Use.NO_PRODUCT,
        "FlashAttention: what stands around the products",
        r"FlashAttnFwdCombine|FlashAttnBwd(Pre|Post)process|flash::prepare_varlen"
        r"|splitkv_\w*combine|flash_bwd_(dot_do_o|convert_dq|convert_dkv"
        r"|clear)",
    ),
    _entry(
        Use.TENSOR_CORES,
        "memory-efficient attention, cuDNN v8/v9 sdpa, TensorRT-LLM fmha, FlashMLA, SageAttention",
        r"fmha_(cutlass|fprop|bwd|dgrad|fwd|v2)|fmha[FB]|_fmha_|fmhaSm\d+\w*Kernel_"
        r"|Fmha(Fwd|Bwd)(?!Combine|Convert|Dot)|fort_native_sdpa|sparse_attn_(fwd"
        r"|bwd)|qk_int8_sv_f(8|16)",
    ),
    _entry(
        Use.TENSOR_CORES,
        "FlashInfer: prefill.cuh (mma), mla",
        r"(Batch|Single)Prefill\w*Kernel|PrefillWithKVCache|BatchMLA\w*Kernel"
        r"|mla::\w*hopper",
    ),
    _entry(Use.TENSOR_CORES, "vLLM: Marlin and Machete (mma.sync)", r"[Mm]arlin(_moe_wna16|_24)?(::|<)|machete"),
    _entry(
        Use.TENSOR_CORES,
        "cuDNN xmma engines without a shape in the name",
        r"dgrad_1x1_stride_2x2|first_layer_wgrad|conv2d_c1_k1",
    ),
    _entry(
        Use.TENSOR_CORES,
        "AMD: Tensile (rocBLAS, hipBLASLt), MIOpen, composable kernel",
        r"_MI\d+x\d+x\d+|_MI\d+_|mfma|xdlops|_xdl|gtcx|wmma|Wmma",
    ),
    _entry(
        Use.TENSOR_CORES,
        "AMD: ck_tile, AITER",
        r"ck_tile\w*(Gemm|Fmha|Conv)|ck_tile::\w+<.*(Gemm|Fmha|Conv)|moe_gemm"
        r"|MoeFlatmm|aiter::(fmha|bf16gemm|fp8gemm|f4gemm|\w*flatmm)",
    ),
    _entry(Use.TENSOR_CORES, "Triton attention of ROCm's AOTriton: products by tl.dot", r"^attn_fwd|^bwd_kernel_dk_dv"),
    _entry(
        Use.UNTOLD,
        "Inductor templates, products in Triton; launches without a name; hipBLASLt's short names",
        r"triton_tem|matmul|scaled_mm|^kernel$|^INVALID$|Cijk_\w*shortname\d",
    ),
    _entry(
        Use.NO_PRODUCT,
        "Inductor's pointwise and reductions; torch's and cub's own kernels",
        r"^triton_(poi|red|per)|elementwise|splitKreduce|Memcpy|Memset|[Cc]opy"
        r"|\bcub::|thrust::|at::native::(?!\w*(gemm|conv))",
    ),
    _entry(
        Use.VECTOR,
        "Tensile without an MI shape; depthwise convolution; FlashInfer decode.cuh",
        r"^Cijk_(?!\w*_MI\d)|depthwise|DecodeWithKVCache|BatchDecode\w*Kernel",
    ),
    _entry(
        Use.UNTOLD,
        "Triton until 2.2 wrote its arguments' classes; later templates",
        r"_kernel_(\d+[dce]*)+$|^triton_(?!poi|red|per)",
    ),
    _entry(
        Use.NO_PRODUCT,
        "what a kernel is called that multiplies no matrices",
        r"(?i)(layer|rms|batch|group|l2)_?norm|soft_?max|\brope|rotary|silu"
        r"|gelu|\brelu|swiglu|_cast|quant|copy|fill|memset|top_?k|sort|scatter"
        r"|gather|embed|cross_entropy|adam|sgd|transpose|permute|\bsum|cumsum"
        r"|dropout|sampl|argmax|reshape|index|offsets|cat_|nchw|nhwc|loss"
        r"|scale|_act_|reduce_segments|routing|im2col|bounds_check",
    ),
    _entry(
        Use.UNTOLD,
        "words for products in names that say no more",
        r"(?i)gemm|matmul|conv(?!ert)|attn|attention|(?<![a-z])mma|fused_moe"
        r"|moe_kernel|\bmlp\b|lstm|gru_|flash|chunk_\w*(fwd|bwd|scan|state)",
    ),
    _entry(
        Use.UNTOLD,
        "bare names: Triton kernels, whose tl.dot no name tells",
        r"^_[a-z]\w*$|^[a-z]\w*_kernel$|^[a-z]\w*_(fwd|bwd)(_\w+)?$",
    ),
)


@functools.lru_cache(maxsize=1 << 16)
def first(name: str, uses: frozenset[Use]) -> Use | None:
    """Return what the first entry of `uses` says that knows `name`, None where none does."""
    return next((entry.use for entry in TABLE if entry.use in uses and entry.pattern.search(name)), None)
