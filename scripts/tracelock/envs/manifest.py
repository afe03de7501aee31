"""Any description of an environment as a list of packages: prefix, lock, pin file, snapshot, exported list."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from tracelock.envs.package import Package, conda_name
from tracelock.errors import Problem, TracelockError

Source = Literal["prefix", "lock", "pin", "snapshot", "yaml", "requirements"]

_ARCHIVE = re.compile(r"(?P<stem>.+)\.(?:conda|tar\.bz2)$")


@dataclass(frozen=True)
class Manifest:
    """What some source says about the packages of an environment.

    Parameters
    ----------
    source
        What it was read from.
    label
        How to name it in a message: its file or folder.
    packages
        Fields that the source does not tell are ``None``.
    python
        Version of Python where it is no package of the environment.
    warnings
        What was odd about the source and how it was taken.
    """

    source: Source
    label: str
    packages: tuple[Package, ...]
    python: str | None = None
    warnings: tuple[Problem, ...] = ()


def is_pin(text: str) -> bool:
    """Return whether a text is one of conda's explicit lists."""
    return any(line.strip() == "@EXPLICIT" for line in text.splitlines())


def read_pin(path: Path, text: str) -> Manifest:
    """Read an explicit list (``@EXPLICIT``): one archive a line, its hash after ``#``.

    Raises
    ------
    TracelockError
        If a line is no address of a conda package; all such lines at once.
    """
    problems: list[Problem] = []
    packages = [package for package in _pin_packages(path, text, problems) if package]
    if problems:
        raise TracelockError(problems)
    return Manifest("pin", str(path), tuple(packages))


def _pin_packages(path: Path, text: str, problems: list[Problem]) -> Iterator[Package | None]:
    for number, line in enumerate(text.splitlines(), 1):
        if (content := line.strip()) and content[0] not in "#@":
            package = explicit_package(content)
            if package is None:
                what = f"is no address of a conda package: {content[:80]}"
                problems.append(Problem(f"{path}:{number}", what, "expected …/<subdir>/<name>-<version>-<build>.conda"))
            yield package


def explicit_package(line: str) -> Package | None:
    """Return the package of a line of an explicit list, or ``None`` if it is none.

    The hash may be an MD5 (32 digits), ``sha256:`` with 64 digits, or 64 digits alone, as conda takes them.
    """
    url, _, tail = line.partition("#")
    base, _, name = unquote(urlsplit(url).path).rpartition("/")
    found = _ARCHIVE.fullmatch(name)
    parts = found["stem"].rsplit("-", 2) if found else []
    if len(parts) != 3 or not all(parts):
        return None
    digest = tail.strip().lower().removeprefix("sha256:").removeprefix("md5:")
    return Package(
        name=conda_name(parts[0]),
        version=parts[1],
        build=parts[2],
        channel=url.rpartition("/")[0].rpartition("/")[0] or None,
        subdir=base.rpartition("/")[2] or None,
        url=url,
        md5=digest if len(digest) == 32 else None,
        sha256=digest if len(digest) == 64 else None,
    )
