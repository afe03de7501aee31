"""Steps that become three times as long half-way."""

import time

import torch
from _own import model

net = model()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for number in range(140):
    optimizer.zero_grad()
    net(torch.randn(8, 128)).sum().backward()
    optimizer.step()
    time.sleep(0.03 if number < 70 else 0.12)
print("end")
