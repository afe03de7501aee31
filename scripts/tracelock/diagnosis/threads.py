"""How many threads a run used, and what of a step can be divided among them."""

from __future__ import annotations

import re

from tracelock.diagnosis.case import Case

# Operators that PyTorch divides among threads: products, convolutions, and what goes over large tensors.
_DIVIDED = re.compile(
    r"conv|(addmm|b?mm|baddbmm|linear|matmul|bmm|attention|lstm|gru)|norm|pool|softmax|relu|gelu|sigmoid|tanh|exp|mul|add|sub|div|sum|mean|_foreach_|_fused_"
)
LARGE_US = 200  # of own time a call: below it the work is not worth dividing (at::internal::GRAIN_SIZE)


def threads(case: Case) -> int | None:
    """Return the threads of an operator, as the run tells them."""
    value = (case.run or {}).get("threads")
    return value if isinstance(value, int) and value > 0 else None


def free_cores(case: Case) -> int | None:
    """Return the cores that operators could use: those that no loading process needs; None where they are not known."""
    workers = case.setting("num_workers")
    return None if case.cores is None else case.cores - (workers if isinstance(workers, int) else 0)


def parallel_us(case: Case) -> float:
    """Return the time a step of operators that are large enough to be divided among threads."""
    rows = [row for row in case.analysis.operators if row.calls and row.self_cpu_us / row.calls >= LARGE_US]
    return sum(row.self_cpu_us for row in rows if _DIVIDED.search(row.name)) / max(1, case.steps)
