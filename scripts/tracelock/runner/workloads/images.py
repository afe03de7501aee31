"""Image classification on JPEG files: decoded and augmented in ``__getitem__``, a small CNN, SGD."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tracelock.runner.loader import make_loader
from tracelock.runner.precision import images as in_format
from tracelock.runner.precision import make_optimizer, prepare_model
from tracelock.runner.settings import Settings
from tracelock.runner.step import make_step
from tracelock.runner.workload import Workload
from tracelock.runner.workloads.jpegs import CLASSES, image_files, pillow
from tracelock.runner.workloads.tables import IMAGES

SETTINGS = IMAGES
Item = tuple[torch.Tensor, int]
# Mean and deviation of ImageNet's channels, as every tutorial normalises by.
_MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
_DEVIATION = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)


class Jpegs(torch.utils.data.Dataset[Item]):
    """JPEG files, decoded and augmented when they are asked for."""

    def __init__(self, files: list[tuple[Path, int]], crop_size: int) -> None:
        self._files = files
        self._crop_size = crop_size
        self._image: Any = pillow()[0]

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, index: int) -> Item:
        """Return a normalised (3, crop, crop) image and its class."""
        path, kind = self._files[index]
        with self._image.open(path) as opened:
            image = opened.convert("RGB")
        edge = self._crop_size
        image = image.resize((edge, edge), self._image.BILINEAR, box=crop_box(*image.size))
        if random.random() < 0.5:  # noqa: S311
            image = image.transpose(self._image.FLIP_LEFT_RIGHT)
        pixels = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8).view(edge, edge, 3)
        return (pixels.permute(2, 0, 1).float().div(255) - _MEAN) / _DEVIATION, kind


def crop_box(width: int, height: int) -> tuple[float, float, float, float]:
    """Return a random part of an image: 25 to 100 % of its area, sides of 3:4 to 4:3, as (left, top, right, bottom)."""
    area = width * height * random.uniform(0.25, 1.0)  # noqa: S311
    ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))  # noqa: S311
    across, down = min(width, math.sqrt(area * ratio)), min(height, math.sqrt(area / ratio))
    left, top = random.uniform(0, width - across), random.uniform(0, height - down)  # noqa: S311
    return left, top, left + across, top + down


def small_cnn(width: int) -> nn.Sequential:
    """Return three convolutions with batch norm, each halving the image, and a linear classifier."""
    layers: list[nn.Module] = []
    for before, after in ((3, width), (width, 2 * width), (2 * width, 4 * width)):
        layers += [
            nn.Conv2d(before, after, 3, padding=1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, CLASSES))


def build(settings: Settings) -> Workload:
    """Return the workload; the image files are made in ``data_dir`` if they are not there yet."""
    files = image_files(Path(settings["data_dir"]), settings["images"], settings["image_size"])
    edge = settings["crop_size"]
    model = prepare_model(small_cnn(settings["width"]), settings, torch.zeros(settings["batch_size"], 3, edge, edge))
    optimizer = make_optimizer(
        torch.optim.SGD, model.parameters(), settings, lr=settings["learning_rate"], momentum=0.9
    )
    criterion = nn.CrossEntropyLoss()

    def loss_of(batch: Any) -> torch.Tensor:
        pictures, kinds = batch
        return criterion(model(in_format(pictures, settings)), kinds)  # type: ignore[no-any-return]

    return Workload(make_loader(Jpegs(files, edge), settings), make_step(loss_of, optimizer, settings), model)
