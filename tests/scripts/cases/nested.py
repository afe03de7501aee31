"""Training inside of nested functions and classes, worker processes that must find a class of `__main__` again."""

import sys

import torch
from _own import Clock, dataset, loss_of, model


class Records(torch.utils.data.Dataset):
    def __init__(self, count):
        self.inner = dataset(count)

    def __len__(self):
        return len(self.inner)

    def __getitem__(self, index):
        return self.inner[index]


class Trainer:
    def __init__(self, workers, method):
        self.net, self.clock = model(), Clock()
        self.loader = torch.utils.data.DataLoader(
            Records(320), batch_size=8, num_workers=workers, multiprocessing_context=method if workers else None
        )

    def fit(self):
        optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1, momentum=0.9)

        def one_step(batch):
            def closure():
                optimizer.zero_grad()
                loss = loss_of(self.net, batch)
                loss.backward()
                return loss

            optimizer.step(closure)
            self.clock.tick()

        for batch in self.loader:
            one_step(batch)
        self.clock.tell()


if __name__ == "__main__":
    assert __file__.endswith("nested.py")
    Trainer(int(sys.argv[1]), sys.argv[2]).fit()
