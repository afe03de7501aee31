"""The ImageNet example's shape: mp.spawn, one process a device, DistributedSampler, meters. Random images, gloo on a CPU.

Run it as `python imagenet_ddp.py` (it spawns its own ranks) or under torchrun.
"""

import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Images(Dataset):
    def __len__(self):
        return 640

    def __getitem__(self, index):
        image = torch.rand(3, 48, 48)
        for _ in range(4):  # what decoding and augmentation cost
            image = torch.nn.functional.avg_pool2d(image, 3, 1, 1)
        return image, index % 10


class AverageMeter:
    def __init__(self):
        self.sum = self.count = 0

    def update(self, value):
        self.sum += value
        self.count += 1


def main_worker(rank, world_size):
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, 2), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, 2), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10),
    )  # fmt: skip
    model = nn.parallel.DistributedDataParallel(model)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
    dataset = Images()
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=8, sampler=sampler, num_workers=0)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        data_time, batch_time, end = AverageMeter(), AverageMeter(), time.time()
        for images, target in loader:
            data_time.update(time.time() - end)
            loss = criterion(model(images), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            batch_time.update(time.time() - end)
            end = time.time()
        if rank == 0:
            print(f"epoch {epoch}: {batch_time.sum:.2f} s, of that data {data_time.sum:.2f} s")
    dist.destroy_process_group()


if __name__ == "__main__":
    if "RANK" in os.environ:
        main_worker(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    else:
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29517")
        mp.spawn(main_worker, nprocs=2, args=(2,))
