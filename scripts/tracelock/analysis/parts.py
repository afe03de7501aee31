"""The exclusive parts of a step and the causes of idle time: one table of each, with the words that people see.

The keys are those of the JSON; a part or a cause that is added here is known to the terminal, the pages and the figures
(which ask for its look when they are imported). Words are those of PyTorch and CUDA where these have one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Labelled:
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
    Labelled("kernel", "kernels", "kernels"),
    Labelled("memcpy", "memcpy", "memcpy"),
    Labelled("memset", "memset", "memset"),
    Labelled("communication", "communication", "collectives"),
    Labelled("runtime", "runtime calls", "runtime"),
    Labelled("dataloader", "DataLoader", "DataLoader"),
    Labelled("cpu_op", "CPU operators", "CPU ops"),
    Labelled("other", "other", "other"),
)
IDLE: Final = (
    Labelled("dataloader", "waits for the DataLoader", "DataLoader"),
    Labelled("host", "waits for host code", "host code"),
    Labelled("synchronization", "the host waits for the GPU", "synchronisation"),
    Labelled("launch", "launch latency", "launch latency"),
    Labelled("communication", "waits for other ranks", "communication"),
    Labelled("unattributed", "unknown cause", "unknown"),
)
STEP_LABELS: Final = {part.key: part.label for part in STEP}
STEP_HEADS: Final = {part.key: part.head for part in STEP}
IDLE_LABELS: Final = {part.key: part.label for part in IDLE}
IDLE_HEADS: Final = {part.key: part.head for part in IDLE}
