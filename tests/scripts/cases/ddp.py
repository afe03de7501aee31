"""Two ranks with gloo, run by torchrun."""

import os

import torch
import torch.distributed as dist
from _own import Clock, dataset, loss_of, model

dist.init_process_group("gloo")
rank = dist.get_rank()
net = torch.nn.parallel.DistributedDataParallel(model())
clock = Clock()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
data = dataset(640)
sampler = torch.utils.data.distributed.DistributedSampler(data)
for batch in torch.utils.data.DataLoader(data, batch_size=8, sampler=sampler):
    optimizer.zero_grad()
    loss_of(net, batch).backward()
    optimizer.step()
    clock.tick()
if rank:
    os.environ.pop("OWN_CLOCK", None)
clock.tell()
dist.destroy_process_group()
