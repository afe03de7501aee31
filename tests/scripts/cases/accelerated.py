"""accelerate around a plain loop, with its own gradient accumulation over four batches."""

import accelerate
import torch
from _own import Clock, dataset, loss_of, model

clock = Clock()
helper = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=4)
net = model()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
net, optimizer, loader = helper.prepare(net, optimizer, torch.utils.data.DataLoader(dataset(1280), batch_size=8))
for batch in loader:
    with helper.accumulate(net):
        helper.backward(loss_of(net, batch))
        optimizer.step()
        optimizer.zero_grad()
    if helper.sync_gradients:
        clock.tick()
clock.tell()
