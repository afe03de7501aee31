"""What the case scripts share: a small model, and the clock by which a script times its own steps."""

import json
import os
import time

import torch


def model(width=128):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = [torch.nn.Linear(width, width), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, *layers[:0], torch.nn.Linear(width, 1))


def dataset(count, width=128):
    generator = torch.Generator().manual_seed(1)
    return torch.utils.data.TensorDataset(
        torch.randn(count, width, generator=generator), torch.randn(count, 1, generator=generator)
    )


def loss_of(net, batch):
    x, y = batch
    return torch.nn.functional.mse_loss(net(x), y)


class Clock:
    """Counts and times steps as a person would."""

    def __init__(self):
        self.ends = []

    def tick(self):
        time.sleep(0.002)  # so that a step is long enough to be compared
        self.ends.append(time.perf_counter())

    def tell(self):
        with open(os.environ.get("OWN_CLOCK", os.devnull), "w") as stream:
            json.dump({"steps": len(self.ends), "ends": self.ends}, stream)
        print("steps", len(self.ends), flush=True)
