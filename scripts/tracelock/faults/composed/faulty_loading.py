"""Faults of reading samples and making batches; imports torch."""

from __future__ import annotations

import json
import pickle
import re
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from tracelock.faults.composed.faulty import Faulty, Sample, anything

WORDS = "the quick brown fox jumps over 13 lazy dogs, 2026-12-03 and 17 more; "


class SleepInSample(Faulty):
    """Waits as one that reads over a network does; microseconds a batch sample."""

    def sample(self, sample: Sample) -> Sample:
        """Wait."""
        time.sleep(self.count / 1e6)
        return sample


class SleepInCollate(Faulty):
    """Waits once a batch."""

    first = 500.0

    def collate(self, samples: list[Sample]) -> None:
        """Wait."""
        time.sleep(self.count / 1e6)


class PythonInSample(Faulty):
    """Computes in pure Python."""

    first = 50.0

    def sample(self, sample: Sample) -> Sample:
        """Add numbers up."""
        total = 0
        for number in range(self.times):
            total += number * number % 7
        anything(total)
        return sample


class JsonInSample(Faulty):
    """Parses a text for each sample."""

    def __init__(self, count: float) -> None:
        super().__init__(count)
        self.text = json.dumps([{"name": "row", "values": [0.5] * 8}] * self.times)

    def sample(self, sample: Sample) -> Sample:
        """Parse."""
        anything(json.loads(self.text))
        return sample


class PickleInSample(Faulty):
    """Unpickles its own bytes for each sample."""

    def __init__(self, count: float) -> None:
        super().__init__(count)
        self.bytes = pickle.dumps([{"name": f"row {number}", "values": [0.5] * 8} for number in range(self.times)])

    def sample(self, sample: Sample) -> Sample:
        """Read what was written here."""
        anything(pickle.loads(self.bytes))  # noqa: S301
        return sample


class RegexInSample(Faulty):
    """Searches a text for each sample."""

    def sample(self, sample: Sample) -> Sample:
        """Search."""
        anything(re.findall(r"\d+|[a-z]+(?=,)", WORDS * self.times))
        return sample


class FilesInSample(Faulty):
    """Opens and reads a small file several times for each sample."""

    def __init__(self, count: float) -> None:
        super().__init__(count)
        self.path = Path(tempfile.mkdtemp(prefix="tracelock-fault-")) / "sample.txt"
        self.path.write_text(WORDS * 40)

    def sample(self, sample: Sample) -> Sample:
        """Read."""
        for _ in range(self.times):
            anything(self.path.read_bytes())
        return sample


class OperatorsInSample(Faulty):
    """Augments with many operators on one row."""

    def sample(self, sample: Sample) -> Sample:
        """Scale and shift."""
        row, label = sample
        for _ in range(self.times):
            row = (row + 1 - 1) * 1
        return row, label


class NumpyInSample(Faulty):
    """Sorts an array for each sample."""

    def sample(self, sample: Sample) -> Sample:
        """Sort."""
        anything(np.sort(np.random.default_rng(0).random(40 * self.times)))
        return sample


class CollateByPieces(Faulty):
    """Puts a batch together column by column."""

    def collate(self, samples: list[Sample]) -> tuple[torch.Tensor, torch.Tensor]:
        """Stack parts of all rows, then put the parts together."""
        rows = [row.flatten() for row, _ in samples]
        parts = torch.tensor_split(torch.arange(len(rows[0])), min(self.times, len(rows[0])))
        columns = [torch.stack([row[part[0] : part[-1] + 1] for row in rows]) for part in parts if len(part)]
        return torch.cat(columns, dim=1).view(len(rows), *samples[0][0].shape), labels_of(samples)


class CollateThroughLists(Faulty):
    """Turns tensors into lists of numbers and back."""

    first = 1.0

    def collate(self, samples: list[Sample]) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Make a tensor of lists, for so many of the samples as `count` says."""
        some = [row for row, _ in samples[: self.times]]
        anything(torch.tensor([row.tolist() for row in some]))
        return None


class StallEveryFourth(Faulty):
    """Waits in every fourth batch."""

    first = 2000.0
    batches = 0

    def collate(self, samples: list[Sample]) -> None:
        """Wait now and then."""
        self.batches += 1
        if self.batches % 4 == 0:
            time.sleep(4 * self.count / 1e6)


class LockInSample(Faulty):
    """Waits for a lock that another thread holds for a while."""

    def __init__(self, count: float) -> None:
        super().__init__(count)
        self.lock = threading.Lock()

    def sample(self, sample: Sample) -> Sample:
        """Take the lock after the other thread."""
        with self._held():
            pass
        return sample

    @contextmanager
    def _held(self) -> Iterator[None]:
        held = threading.Event()
        other = threading.Thread(target=self._hold, args=(held,))
        other.start()
        held.wait()
        with self.lock:
            yield
        other.join()

    def _hold(self, held: threading.Event) -> None:
        with self.lock:
            held.set()
            time.sleep(self.count / 1e6)


def labels_of(samples: list[Sample]) -> torch.Tensor:
    """Return the labels of some samples."""
    return torch.tensor([label for _, label in samples])


FAULTS: dict[str, type[Faulty]] = {
    "sleep in the sample": SleepInSample,
    "sleep in collate": SleepInCollate,
    "python in the sample": PythonInSample,
    "json in the sample": JsonInSample,
    "pickle in the sample": PickleInSample,
    "regex in the sample": RegexInSample,
    "file reads in the sample": FilesInSample,
    "small operators in the sample": OperatorsInSample,
    "numpy in the sample": NumpyInSample,
    "collate by pieces": CollateByPieces,
    "collate through lists": CollateThroughLists,
    "stall every fourth batch": StallEveryFourth,
    "lock in the sample": LockInSample,
}
