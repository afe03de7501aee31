"""Pin files: a lock as the explicit list that Snakemake and conda install from, each archive with its SHA-256."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tracelock.envs.catalog import PLATFORM, Environment
from tracelock.envs.lock import Lock, LockedPackage, read_lock
from tracelock.io import write_text


def pin_text(lock: Lock, platform: str, source: str) -> str:
    """Return the pin file of a lock for one platform; the same lock always gives the same bytes.

    Parameters
    ----------
    source
        The lock's name for the comment at the head.

    Notes
    -----
    ``conda-lock render -k explicit`` writes MD5 alone. pip packages cannot stand in such a list; `check` reports them.
    """
    packages = [package for package in lock.for_platform(platform) if package.manager == "conda"]
    return "\n".join(
        [
            f"# Rendered from {source} by `tracelock env render`; do not edit.",
            f"# platform: {platform}",
            f"# input_hash: {lock.metadata.content_hash.get(platform)}",
            "@EXPLICIT",
            *(pin_line(package.url, package.hash.sha256) for package in linking_order(packages)),
            "",
        ]
    )


def pin_line(url: str, sha256: str | None) -> str:
    """Return one line of an explicit list."""
    return f"{url}#sha256:{sha256}"


def linking_order(packages: Iterable[LockedPackage]) -> list[LockedPackage]:
    """Return the packages so that each comes after what it needs, else by name.

    Clients link in this order, and a noarch package needs Python there. Packages that need each other (pytorch and
    torchtriton) come in the order in which they were met.
    """
    by_name = {package.name: package for package in sorted(packages, key=lambda package: package.name)}
    done: dict[str, LockedPackage] = {}
    for name in by_name:
        done |= {package.name: package for package in _after_needs(name, by_name, done)}
    return list(done.values())


def _after_needs(name: str, by_name: dict[str, LockedPackage], done: dict[str, LockedPackage]) -> list[LockedPackage]:
    """Return what `name` needs and is not yet `done`, then itself: depth first, without recursion."""
    order: list[LockedPackage] = []
    met = set(done)
    stack: list[tuple[str, Iterator[str]]] = []
    if name not in met:
        met.add(name)
        stack.append((name, iter(sorted(by_name[name].dependencies))))
    while stack:
        current, needs = stack[-1]
        for need in needs:
            if need in by_name and need not in met:
                met.add(need)
                stack.append((need, iter(sorted(by_name[need].dependencies))))
                break
        else:
            order.append(by_name[current])
            stack.pop()
    return order


def expected_pin(environment: Environment, lock: Lock, platform: str = PLATFORM) -> str:
    """Return what an environment's pin file must hold."""
    return pin_text(lock, platform, environment.shown(lock.path).as_posix())


def render(environment: Environment, platform: str = PLATFORM) -> bool:
    """Write an environment's pin file from its lock; return whether it changed.

    A file that is already right is left alone: Snakemake rebuilds an environment when a byte of its pin changes.

    Raises
    ------
    TracelockError
        If the lock cannot be read or is for another platform.
    """
    text = expected_pin(environment, read_lock(environment.lock), platform)
    pin = environment.pin(platform)
    if pin.is_file() and pin.read_bytes() == text.encode("utf-8"):
        return False
    write_text(pin, text)
    return True
