"""Batches that come from elsewhere: an iterable dataset, a generator, a queue filled by a thread."""

import queue
import sys
import threading
import time

import torch
from _own import Clock, loss_of, model

kind, count = sys.argv[1], 40


def batches():
    generator = torch.Generator().manual_seed(1)
    for _ in range(count):
        time.sleep(0.004)
        yield torch.randn(8, 128, generator=generator), torch.randn(8, 1, generator=generator)


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return batches()


def queued():
    box = queue.Queue(maxsize=2)

    def fill():
        for batch in batches():
            box.put(batch)
        box.put(None)

    threading.Thread(target=fill, daemon=True).start()
    return iter(box.get, None)


source = {
    "iterable": lambda: torch.utils.data.DataLoader(Stream(), batch_size=None),
    "generator": batches,
    "queue": queued,
}[kind]()
net, clock = model(), Clock()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for batch in source:
    optimizer.zero_grad()
    loss_of(net, batch).backward()
    optimizer.step()
    clock.tick()
clock.tell()
