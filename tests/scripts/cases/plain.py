"""A plain loop, run as `python plain.py --epochs N`."""

import argparse
import os
import sys

import torch
from _own import Clock, dataset, loss_of, model

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--batches", type=int, default=30)
parser.add_argument("--accumulate", type=int, default=1)
parser.add_argument("--end", choices=("return", "exit", "raise", "hard"), default="return")
arguments = parser.parse_args()

net, clock = model(), Clock()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
loader = torch.utils.data.DataLoader(dataset(arguments.batches * 8), batch_size=8, shuffle=True)
for epoch in range(arguments.epochs):
    for number, batch in enumerate(loader, 1):
        loss = loss_of(net, batch) / arguments.accumulate
        loss.backward()
        if number % arguments.accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
            clock.tick()
        if arguments.end == "raise" and len(clock.ends) == 7:
            clock.tell()
            raise ValueError("at step 7")
clock.tell()
if arguments.end == "exit":
    sys.exit(3)
if arguments.end == "hard":
    os._exit(4)
