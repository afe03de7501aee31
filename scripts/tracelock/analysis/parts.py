"""The exclusive parts of a step and the causes of idle time: one table of each, with the words that people see.

The keys are those of the JSON; a part or a cause that is added here is known to the terminal, the pages and the figures
(which ask for its look when they are imported). Words are those of PyTorch and CUDA where these have one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Part:
    """One part of a step, or one cause of idle time.

    Parameters
    ----------
    key
        Its key in the JSON of an analysis.
    label
        Its words in figures, pages and sentences.
    head
        Its words where a column is narrow.
    """

    key: str
    label: str
    head: str


# In order of precedence: a moment belongs to the first part that covers it (the TensorBoard profiler plugin's order).
STEP: Final = (
    Part("kernel", "kernels", "kernels"),
    Part("memcpy", "memcpy", "memcpy"),
    Part("memset", "memset", "memset"),
    Part("communication", "communication", "collectives"),
    Part("runtime", "runtime calls", "runtime"),
    Part("dataloader", "DataLoader", "DataLoader"),
    Part("cpu_op", "CPU operators", "CPU ops"),
    Part("other", "other", "other"),
)
IDLE: Final = (
    Part("dataloader", "waits for the DataLoader", "DataLoader"),
    Part("host", "waits for host code", "host code"),
    Part("synchronization", "the host waits for the GPU", "synchronisation"),
    Part("launch", "launch latency", "launch latency"),
    Part("communication", "waits for other ranks", "communication"),
    Part("unattributed", "unknown cause", "unknown"),
)
STEP_LABELS: Final = {part.key: part.label for part in STEP}
STEP_HEADS: Final = {part.key: part.head for part in STEP}
IDLE_LABELS: Final = {part.key: part.label for part in IDLE}
IDLE_HEADS: Final = {part.key: part.head for part in IDLE}
