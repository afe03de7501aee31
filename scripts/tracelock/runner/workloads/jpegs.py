"""A folder of JPEG files, made once: coloured shapes on uneven ground, one kind of shape a class.

Pillow is imported only where files are made or read.
"""

from __future__ import annotations

import fcntl
import os
import random
import shutil
from pathlib import Path
from typing import Any

from tracelock.errors import EXIT_FAILED, TracelockError
from tracelock.runner.locks import open_lock

CLASSES = 8
_QUALITY = 90
_SEED = 20240  # of the files alone: every run of every study reads the same ones
_VERSION = 1  # counts up whenever the same parameters give other images


def pillow() -> Any:
    """Return Pillow's modules Image and ImageDraw.

    Raises
    ------
    TracelockError
        If Pillow is not installed in this environment.
    """
    try:
        from PIL import Image, ImageDraw
    except ImportError as error:
        what = f"the images workload needs Pillow here: pip install pillow, or conda install pillow ({error})"
        raise TracelockError(what, EXIT_FAILED) from None
    return Image, ImageDraw


def image_files(folder: Path, count: int, size: int) -> list[tuple[Path, int]]:
    """Return (file, class) of `count` JPEG files of `size` × `size` pixels below `folder`, made where they are absent.

    Several runs may ask at once: one makes the files under a lock, in a folder that gets its name when it is whole.
    """
    files = folder / f"{count}x{size}px-v{_VERSION}"
    if not files.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = open_lock(folder / f".{files.name}.lock")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if not files.is_dir():
                _make(files, count, size)
        finally:
            os.close(descriptor)
    return [(files / f"class_{number % CLASSES}" / f"{number:06d}.jpg", number % CLASSES) for number in range(count)]


def _make(files: Path, count: int, size: int) -> None:
    """Make all files; the lock is held, so a half-made folder is a dead maker's."""
    temporary = files.with_name(f".{files.name}.part")
    shutil.rmtree(temporary, ignore_errors=True)
    for kind in range(CLASSES):
        (temporary / f"class_{kind}").mkdir(parents=True)
    for number in range(count):
        path = temporary / f"class_{number % CLASSES}" / f"{number:06d}.jpg"
        draw_image(number, size).save(path, quality=_QUALITY)
    temporary.rename(files)


def draw_image(number: int, size: int) -> Any:
    """Return image `number`, whose class is ``number % CLASSES``, as a Pillow image of `size` × `size` pixels."""
    image_module, draw_module = pillow()
    chance = random.Random(_SEED + number)  # noqa: S311
    image = _ground(image_module, chance, size)
    pen = draw_module.Draw(image)
    for _ in range(3):
        corners = 3 + number % CLASSES
        radius = size * chance.uniform(0.1, 0.3)
        centre = (chance.uniform(radius, size - radius), chance.uniform(radius, size - radius), radius)
        pen.regular_polygon(
            centre, corners, rotation=chance.randrange(360), fill=_colour(chance), outline=_colour(chance)
        )
    return image


def _ground(image_module: Any, chance: random.Random, size: int) -> Any:
    """Return coarse and fine noise, so that a file has about the bytes per pixel of a photograph."""
    coarse, fine = (
        image_module.frombytes("RGB", (edge, edge), chance.randbytes(3 * edge * edge)).resize((size, size))
        for edge in (max(2, size // 32), max(2, size // 2))
    )
    return image_module.blend(coarse, fine, 0.2)


def _colour(chance: random.Random) -> tuple[int, int, int]:
    red, green, blue = chance.randbytes(3)
    return red, green, blue
