"""Matrix products and convolutions in plain single precision on a device with tensor cores."""

from __future__ import annotations

import re
from typing import Any

from tracelock.analysis.model import KernelOfOperator
from tracelock.analysis.tensor_cores import is_eligible
from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.measures import of_step, percent
from tracelock.diagnosis.model import Evidence, Remedy
from tracelock.diagnosis.rule import Cause, Rule
from tracelock.diagnosis.rules.memory_layout import turns

# By the name that the file gives the device: what has tensor cores at all, and what has TF32.
_TENSOR_CORES = re.compile(
    r"V100|Titan V|TITAN V|T4\b|RTX|A\d{1,3}\b|A\d+G|A\d00|H\d00|H20\b|GH200|L4\b|L40|B\d00|GB200|Quadro RTX"
)
_ONLY_HALF = re.compile(r"V100|T(?:ITAN|itan) V|T4\b|RTX 20|Quadro RTX|GTX 16")

# What products get faster by as a rule: tensor cores are harder to feed, and memory is no faster.
USUAL_SPEEDUP = 2.2


def examine(case: Case) -> Cause | None:
    """Return the cause where eligible kernels use no tensor cores, and using them could gain ``min_gain``."""
    device = next((device.name for device in case.analysis.trace.devices if _TENSOR_CORES.search(device.name)), None)
    unused = _unused_us(case)
    if device is None or not unused or not case.steps:
        return None
    removal = Removal(device=unused * (1 - 1 / case.limits.tensor_core_speedup))
    gain = case.gain(removal)
    if gain < case.limits.min_gain:
        return None
    likely = Removal(device=unused * (1 - 1 / USUAL_SPEEDUP))
    return Cause(
        title=f"Matrix products leave the tensor cores of {device} unused: up to {percent(gain)} of the step",
        removal=removal,
        likely=likely,
        share=case.share(unused),
        evidence=(
            of_step(case, "kernels of matrix products and convolutions without tensor cores", unused),
            *_largest(case),
        ),
        remedies=tuple(_remedies(case, device)),
    )


def _unused_us(case: Case) -> float:
    """Return the time a step of products' and convolutions' own kernels that use no tensor cores, µs."""
    return sum(row.total_us for row in _plain(case)) / max(1, case.steps)


def _plain(case: Case) -> list[KernelOfOperator]:
    """Return the kernels that an eligible operator launched itself, and whose names tell of no tensor cores."""
    told = {kernel.name: kernel.tensor_cores for kernel in case.analysis.kernels}
    return [
        row
        for row in case.analysis.kernels_by_operator
        if row.operator and is_eligible(row.operator) and told.get(row.kernel) is False and not turns(row.kernel)
    ]


def _largest(case: Case) -> list[Evidence]:
    return [
        Evidence(f"{row.operator}: {row.kernel[:100]}: {row.calls} times, {row.total_us:,.0f} µs", row.total_us, "µs")
        for row in sorted(_plain(case), key=lambda row: -row.total_us)[:3]
    ]


def _remedies(case: Case, device: str) -> list[Remedy]:
    remedies = []
    only_half = _ONLY_HALF.search(device) is not None
    if not only_half and case.setting("matmul_precision") in (None, "highest"):
        remedies.append(Remedy({"matmul_precision": "high"}, "matrix products in TF32"))
    if case.setting("amp") in (None, "off"):
        settings: dict[str, Any] = {"amp": "fp16" if only_half else "bf16"}
        remedies.append(Remedy(settings, "matrix products and convolutions in half precision, and half the bytes"))
    return remedies


RULE = Rule(
    code="matmul-precision",
    needs="kernels linked to their operators, and a device that is known to have tensor cores",
    speaks="kernels that could use tensor cores and do not are so long that `tensor_core_speedup` on them gains "
    "`min_gain` of "
    "the step",
    remedies="`matmul_precision: high` where the device has TF32, `amp: bf16` (`fp16` on Volta and Turing)",
    thresholds=("tensor_core_speedup", "min_gain"),
    examine=examine,
)
