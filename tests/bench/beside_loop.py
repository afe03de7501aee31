"""A training loop that times itself: what `tests/bench/beside.py` runs alone and below us. Prints one JSON line.

python beside_loop.py STEPS FIRST WIDTH      times the steps from FIRST on
"""

from __future__ import annotations

import json
import sys
import time
from statistics import median

import torch
from torch.utils.data import DataLoader, TensorDataset


def main(steps: int, first: int, width: int) -> None:
    """Train a small network, and print the median step and the thread's processor time a step, microseconds."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = TensorDataset(torch.randn(steps * 32, 64), torch.randint(0, 10, (steps * 32,)))
    loss = torch.nn.CrossEntropyLoss()
    ends, busy = [], []
    for inputs, targets in DataLoader(data, batch_size=32):
        optimizer.zero_grad()
        loss(model(inputs), targets).backward()
        optimizer.step()
        ends.append(time.perf_counter())
        busy.append(time.thread_time())
    lengths = [later - former for former, later in zip(ends[first:-1], ends[first + 1 :], strict=True)]
    cpu = [later - former for former, later in zip(busy[first:-1], busy[first + 1 :], strict=True)]
    print(json.dumps({"step_us": median(lengths) * 1e6, "cpu_us": median(cpu) * 1e6, "steps": len(lengths)}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
