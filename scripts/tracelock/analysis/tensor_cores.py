"""Whether a kernel uses tensor cores (matrix cores), as far as its name says, and whether an operator could.

The names are those of `name_table`. A kernel that no name there knows, and whose own name speaks of no product, is one
of the many that multiply nothing; where a name speaks of a product and not of how it is done, nothing is known.
"""

from __future__ import annotations

import re
from typing import Final

from tracelock.analysis.name_table import Use, first
from tracelock.analysis.names import is_collective_kernel

_ASKED: Final = frozenset({Use.TENSOR_CORES, Use.VECTOR, Use.NO_PRODUCT, Use.UNTOLD})
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
    if is_collective_kernel(kernel):
        return False
    use = first(kernel, _ASKED)
    return None if use is Use.UNTOLD else use is Use.TENSOR_CORES


def is_eligible(operator: str) -> bool:
    """Return whether an operator multiplies matrices or convolves, which tensor cores can do in fp16, bf16 or TF32."""
    return _ELIGIBLE.match(operator) is not None
