"""Mixed precision with a gradient scaler that skips two steps, since their gradients are not finite."""

import torch
from _own import Clock, dataset, loss_of, model

net, clock = model(), Clock()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for number, batch in enumerate(torch.utils.data.DataLoader(dataset(320), batch_size=8)):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = loss_of(net, batch)
    if number in (3, 11):
        loss = loss * float("inf")
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    clock.tick()
clock.tell()
