"""Several optimizers: `gan` steps two in turn, `critic` one five times as often, `phases` one after the other; `lbfgs`
calls its closure many times a step, `wrapped` hides one optimizer in another."""

import sys

import torch
from _own import Clock, dataset, loss_of, model

kind, clock, count = sys.argv[1], Clock(), 40
one, two = model(), model()
first = torch.optim.Adam(one.parameters())
second = torch.optim.SGD(two.parameters(), lr=0.01)
batch = next(iter(torch.utils.data.DataLoader(dataset(64), batch_size=16)))


class Wrapper(torch.optim.Optimizer):
    def __init__(self, inner):
        super().__init__(inner.param_groups, {})
        self.inner = inner

    def step(self, closure=None):
        return self.inner.step(closure)


def update(net, optimizer):
    optimizer.zero_grad()
    loss_of(net, batch).backward()
    optimizer.step()


if kind == "lbfgs":
    optimizer = torch.optim.LBFGS(one.parameters(), max_iter=4)
    for _ in range(count):

        def closure():
            optimizer.zero_grad()
            loss = loss_of(one, batch)
            loss.backward()
            return loss

        optimizer.step(closure)
        clock.tick()
elif kind == "wrapped":
    wrapped = Wrapper(second)
    for _ in range(count):
        update(two, wrapped)
        clock.tick()
elif kind == "phases":
    for optimizer, net in ((first, one), (second, two)):
        for _ in range(count // 2):
            update(net, optimizer)
            clock.tick()
else:
    for number in range(count):
        update(one, first)
        if kind == "gan" or number % 5 == 4:
            update(two, second)
        clock.tick()
clock.tell()
