"""Whether a kernel uses tensor cores (matrix cores), as far as its name says, and whether an operator could.

Names of NVIDIA: the instruction shapes that cuDNN, cuBLAS and CUTLASS write (884, 1688, 16816), hmma and imma of
Volta to Ada, wgmma and warp-specialised kernels of Hopper, nvjet (cuBLAS from 12.8 on, Hopper and Blackwell),
tcgen05 and UMMA of Blackwell, fused attention. Names of AMD: Tensile's MI shapes, xdlops and MFMA, gtcx, WMMA.
"""

from __future__ import annotations

import re
from typing import Final

_USES: Final = re.compile(
    r"[hsdiz]884|[hsic]1688|[hsi]?168(08|16|32|64)|88128|i8816|[hiqbd]mma(?!p)|wgmma|[Gg]mma|[Uu]mma|tcgen05"
    r"|(?<![a-z])tensorop|tensor_op_|OpClassTensorOp|MmaTensorOp|nvjet|[Ww]arp_?[Ss]pecialized|warpgroup"
    r"|cutlass3x_sm(90|100|103|120)|cutlass_sm(90|100|120)|tensor16x8x|_tensor8x8x"
    r"|sm(90|100|103|120)_xmma|xmma_(gemm|implicit_gemm|sparse|warp|conv|fprop|dgrad|wgrad)"
    r"|tf32f32|bf16bf16_bf16|f16f16_f16|e4m3|e5m2|e2m1"
    r"|[Ff]lash_(fwd|bwd|attn)|flashattn|fmha_(cutlass|fprop|bwd|dgrad)|fmha[FB]|_fmha_|fort_native_sdpa"
    r"|dgrad_1x1_stride_2x2|first_layer_wgrad|conv2d_c1_k1"
    r"|_MI\d+x\d+x\d+|_MI\d+_|mfma|xdlops|_xdl|gtcx|wmma|ck_tile\w*(Gemm|Fmha|Conv)|deep_gemm|attn_fwd|bwd_kernel_dk_dv"
)
_VECTOR_ONLY: Final = re.compile(
    r"xmma_gemm_f32f32_f32f32_f32|xmma_\w*f64f64|simt|sgemm|dgemm|ffma|gemv|gemmSN|implicit_convolve_sgemm",
    re.IGNORECASE,
)
_UNTOLD: Final = re.compile(
    r"triton_tem|^triton_(?!poi|red|per)|_kernel_(\d+[dce]*)+$|matmul_kernel$|^kernel$|^INVALID$"
)
_ELIGIBLE: Final = re.compile(
    r"aten::((_?convolution|_?conv_?(transpose)?[123]d|conv_tbc|(cudnn|miopen|thnn|slow|mkldnn)_conv\w*|_slow_conv\w*)"
    r"(_overrideable|_backward\w*)?"
    r"|(addmm|_addmm_activation|mm|bmm|baddbmm|addbmm|matmul|linear|linear_backward|_scaled_mm|_grouped_mm|_int_mm|chain_matmul"
    r"|linalg_multi_dot|einsum|bilinear|_trilinear)(_backward)?(_out)?"
    r"|(lstm|gru|rnn_tanh|rnn_relu)(_cell)?|_(cudnn|miopen)_rnn(_backward)?|miopen_rnn\w*|_thnn_fused_\w+"
    r"|scaled_dot_product_attention|_scaled_dot_product_\w+|_(flash|efficient|cudnn)_attention_(forward|backward))$"
)


def uses_tensor_cores(kernel: str) -> bool | None:
    """Return whether a kernel of this name computes on tensor cores; None where such names do not say.

    A vector kernel of the same family (SIMT, plain single precision) is told apart by its name too.
    """
    if _VECTOR_ONLY.search(kernel) and not re.search(r"tensorop|tf32|[hs]884|1688|168(16|08)|_MI\d+", kernel):
        return False
    if _USES.search(kernel):
        return True
    return None if _UNTOLD.search(kernel) else False


def is_eligible(operator: str) -> bool:
    """Return whether an operator multiplies matrices or convolves, which tensor cores can do in fp16, bf16 or TF32."""
    return _ELIGIBLE.match(operator) is not None
