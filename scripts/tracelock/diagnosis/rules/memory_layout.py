"""Convolutions turn their operands between memory layouts."""

from __future__ import annotations

import re

from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.measures import of_step, percent
from tracelock.diagnosis.model import Evidence, Remedy
from tracelock.diagnosis.rule import Cause, Rule

_TURNS = re.compile(
    r"nchwToNhwc|nhwcToNchw|nchw2nhwc|nhwc2nchw|batched_transpose_\w+|convertTensor_kernel", re.IGNORECASE
)


def turns(kernel: str) -> bool:
    """Return whether a kernel only turns an operand between layouts."""
    return _TURNS.search(kernel) is not None


def examine(case: Case) -> Cause | None:
    """Return the cause where kernels that only turn layouts take ``min_gain`` of the step."""
    found = [kernel for kernel in case.analysis.kernels if turns(kernel.name)]
    if not found or not case.steps:
        return None
    removal = Removal(device=sum(kernel.total_us for kernel in found) / case.steps)
    gain = case.gain(removal)
    if gain < case.limits.min_gain:
        return None
    in_settings = Remedy({"channels_last": True}, "convolutions find the layout that their kernels compute in")
    advice = (
        "model.to(memory_format=torch.channels_last), and the same for the batches; keep `permute` out of "
        "the forward pass"
    )
    return Cause(
        title=f"Convolutions turn their operands between layouts: {percent(gain)} of the step",
        removal=removal,
        share=case.share(removal.device),
        evidence=(
            of_step(case, "kernels that turn layouts", removal.device),
            *(
                Evidence(f"{kernel.name[:100]}: {kernel.calls} times, {kernel.total_us:,.0f} µs", kernel.total_us, "µs")
                for kernel in found[:3]
            ),
        ),
        remedies=(in_settings,)
        if case.setting("channels_last") is not True
        else (Remedy({}, in_settings.expect, advice),),
    )


RULE = Rule(
    code="memory-layout",
    needs="kernels in the trace",
    speaks="kernels that only turn operands between NCHW and NHWC take `min_gain` of the step",
    remedies="`channels_last`; code: the batches, too",
    thresholds=("min_gain",),
    examine=examine,
)
