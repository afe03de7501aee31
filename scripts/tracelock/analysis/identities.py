"""What a kernel or an operator does, whatever its name is in this version: for comparing two traces.

Names change with versions and builds: Inductor numbers its kernels and adds the signature of their arguments, Triton's
cache adds a hash, cuDNN and cuBLAS name tiles, stages and architectures, templates gain arguments. Names are
compared in three steps: as they are, without what a build puts into them, and by what they do.
"""

from __future__ import annotations

import re

# (role, what the name of such a kernel or operator holds); the first that is found decides.
_ROLES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (role, re.compile(pattern, re.IGNORECASE))
    for role, pattern in (
        ("communication", r"nccl|rccl|all_?reduce_kernel|all_?gather|reduce_?scatter|deep_ep|nvshmem"),
        ("attention", r"attention|flash|fmha|\bmha_"),
        ("convolution, gradient of weights", r"wgrad|bwd_weight|backward_filter|cudnn\w*wgrad"),
        ("convolution, gradient of inputs", r"dgrad|bwd_data|backward_data"),
        ("convolution, forward", r"fprop|implicit_(con)?v?_?gemm|convolve|conv\dd|conv_|winograd|fwd_conv|igemm_fwd"),
        ("matrix product", r"gemm|cutlass|matmul|\bmm\b|addmm|gemv|hgemm|nvjet|cijk_|triton_tem_|splitk"),
        ("optimizer", r"multi_tensor_apply|fused_adam|adam|sgd|lamb|optimizer"),
        ("batch norm", r"batch_?norm|bn_(fw|bw)|bnorm"),
        ("layer norm", r"layer_?norm|rms_?norm"),
        ("softmax", r"softmax|log_?softmax"),
        ("pooling", r"pool"),
        ("embedding", r"embedding|indexing_backward"),
        ("index, gather, scatter", r"index|gather|scatter"),
        ("layout change", r"nchw|nhwc|transpose|permute"),
        ("copy", r"copy|memcpy|direct_copy|CatArray|_cat_"),
        ("random numbers", r"philox|distribution|dropout|random"),
        ("sort", r"sort|radix|topk"),
        ("reduction", r"reduce|triton_(red|per)_|sum|mean|norm"),
        ("elementwise", r"elementwise|vectorized|triton_poi_|pointwise|unrolled|add|mul"),
    )
)
_TEMPLATE = re.compile(r"<[^<>]*>")
_BUILD = (
    (re.compile(r"^void "), ""),
    (re.compile(r"\((?!anonymous).*$"), ""),  # arguments
    (re.compile(r"_(?=\d*[cde])(?=[cde]*\d)[\dcde]+$"), ""),  # Triton: which arguments are divisible by 16
    (re.compile(r"_[0-9a-f]{8,64}(?=_|$)"), ""),  # hashes of Triton's cache and of autotuning
    (re.compile(r"(?<=[A-Za-z])_?\d+$"), ""),  # Inductor's numbers
    (re.compile(r"(?:cudnn|cublas|cutlass)_?v?\d+(?=::|_)"), lambda match: match[0].rstrip("0123456789v_")),
    (re.compile(r"(sm|ampere|volta|turing|hopper|gfx|maxwell|sm_?)\d+\w?_"), ""),
    (re.compile(r"_?(tilesize|warpgroupsize|warpsize|stage|stages|bz|align|execute)\d*(x\d+)*\w*?(?=_|$)"), ""),
    (re.compile(r"_\d+x\d+(x\d+)*"), ""),
    (re.compile(r"Backward\d+"), "Backward"),
)


def without_build(name: str) -> str:
    """Return a name without what a version or a build puts into it: hashes, numbers, tiles, arguments of templates."""
    while (shorter := _TEMPLATE.sub("", name)) != name:
        name = shorter
    for pattern, replacement in _BUILD:
        name = pattern.sub(replacement, name)
    return name.strip("_ ")


def role(name: str) -> str | None:
    """Return what a kernel or an operator does, None where its name does not say."""
    return next((role for role, pattern in _ROLES if pattern.search(name)), None)
