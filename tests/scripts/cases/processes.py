"""A script that forks, one that is a notebook's cells, one that predicts, one that has a profiler of its own."""

import os
import sys

import torch
from _own import Clock, dataset, loss_of, model

CELLS = """
for batch in loader:
    optimizer.zero_grad()
    loss_of(net, batch).backward()
    optimizer.step()
    clock.tick()
"""
kind, net, clock = sys.argv[1], model(), Clock()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(dataset(320), batch_size=8)


def train():
    exec(compile(CELLS, "<cell 3>", "exec"), globals())


def predict(batch):
    with torch.no_grad():
        return net(batch[0])


if kind == "cells":
    train()
elif kind == "fork":
    train()
    child = os.fork()
    if not child:
        clock = Clock()
        os.environ.pop("OWN_CLOCK", None)
        for _ in range(3):
            train()
        clock.tell()
        os._exit(0)
    os.waitpid(child, 0)
elif kind == "predict":
    for batch in loader:
        predict(batch)
        clock.tick()
elif kind == "profiler":
    folder = sys.argv[2]
    with torch.profiler.profile(
        schedule=torch.profiler.schedule(wait=20, warmup=1, active=2, repeat=1),
        on_trace_ready=lambda profiler: profiler.export_chrome_trace(os.path.join(folder, "mine.json")),
    ) as profiler:
        for batch in loader:
            optimizer.zero_grad()
            loss_of(net, batch).backward()
            optimizer.step()
            clock.tick()
            profiler.step()
clock.tell()
