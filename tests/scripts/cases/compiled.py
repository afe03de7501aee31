"""torch.compile of the model, or of the optimizer's step as well."""

import sys

import torch
from _own import Clock, dataset, loss_of, model

net, clock = model(), Clock()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
fast = torch.compile(net, backend="eager")
step = torch.compile(optimizer.step, backend="eager") if sys.argv[1] == "step" else optimizer.step
for batch in torch.utils.data.DataLoader(dataset(320), batch_size=8):
    optimizer.zero_grad()
    loss_of(fast, batch).backward()
    step()
    clock.tick()
clock.tell()
