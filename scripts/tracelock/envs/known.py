"""Combinations that are known to break although the channels allow them, and what a build of PyTorch runs on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tracelock.envs.lock import LockedPackage
from tracelock.envs.spec import EnvSpec
from tracelock.envs.versions import satisfies

_CUDA_NAMES = ("pytorch-cuda", "cudatoolkit", "cuda-toolkit", "cuda-version", "pytorch-gpu")
_PYTORCH_CHANNEL = re.compile(r"/pytorch/(linux-64|noarch|osx-64|osx-arm64|win-64)/")


@dataclass(frozen=True)
class Breakage:
    """`package` in the range `versions` (or of a build like `build`) breaks `beside` in the range `beside_versions`.

    Parameters
    ----------
    own_builds
        Whether this holds for the builds of the pytorch channel only; conda-forge builds against what it ships.
    """

    package: str
    versions: str
    beside: str
    beside_versions: str
    why: str
    ask: str
    own_builds: bool = False
    build: str = ""


BREAKAGES = (
    Breakage(
        *("mkl", ">=2024.1", "pytorch", "*"),
        why="import torch fails: undefined symbol iJIT_NotifyEvent (pytorch#123097)",
        ask="mkl<2024.1",
        own_builds=True,
    ),
    Breakage(
        *("numpy", ">=2", "pytorch", "<2.5"),
        why="torch was built against NumPy 1 and fails where it meets arrays",
        ask="numpy<2",
        own_builds=True,
    ),
    Breakage(
        *("llvm-openmp", ">=16", "pytorch", "*"),
        why="these builds of torch need an OpenMP runtime before 16",
        ask="llvm-openmp<16",
        own_builds=True,
    ),
    Breakage(
        *("libblas", "*", "pytorch", "*"),
        why="torch uses MKL: a second BLAS with threads of its own slows both down",
        ask="libblas=*=*mkl",
        own_builds=True,
        build=r"(?!.*mkl).*",
    ),
    Breakage(
        *("setuptools", ">=70", "pytorch", "<2.1"),
        why="torch imports a part of pkg_resources that setuptools 70 dropped",
        ask="setuptools<70",
    ),
    Breakage(
        *("setuptools", ">=81", "tensorboard", "<=2.20"),
        why="tensorboard imports pkg_resources, which setuptools 81 dropped",
        ask="setuptools<81",
    ),
)


def broken(packages: Mapping[str, LockedPackage]) -> Iterator[tuple[LockedPackage, str, str]]:
    """Yield what is known to break: the package, what is wrong with it, and what to ask for instead."""
    for rule in BREAKAGES:
        package, beside = packages.get(rule.package), packages.get(rule.beside)
        if package and beside and _applies(rule, package, beside):
            shown = f"{package.name} {package.version}" + (f" ({package.build_string})" if rule.build else "")
            yield package, f"{shown} beside {beside.name} {beside.version}: {rule.why}", rule.ask


def _applies(rule: Breakage, package: LockedPackage, beside: LockedPackage) -> bool:
    if rule.own_builds and not _PYTORCH_CHANNEL.search(beside.url):
        return False
    if rule.build and not re.fullmatch(rule.build, package.build_string or ""):
        return False
    return satisfies(package.version, rule.versions) and satisfies(beside.version, rule.beside_versions)


def asked_device(spec: EnvSpec) -> str | None:
    """Return what an environment is asked to run on: ``cuda``, ``cpu``, or ``None`` where its file does not say."""
    torch, mutex = spec.dependency("pytorch"), spec.dependency("pytorch-mutex")
    builds = " ".join(asked.build or "" for asked in (torch, mutex) if asked)
    if any(spec.dependency(name) for name in _CUDA_NAMES) or re.search("cuda|gpu", builds):
        return "cuda"
    if spec.dependency("cpuonly") or "cpu" in builds:
        return "cpu"
    stem = spec.path.stem
    if re.search(r"(^|[-_.])(cu\d{2,3}|cuda|gpu)", stem):
        return "cuda"
    return "cpu" if re.search(r"(^|[-_.])cpu($|[-_.])", stem) else None


def built_device(torch: LockedPackage) -> str | None:
    """Return what a build of pytorch runs on by its build string, or ``None`` where that does not say."""
    build = torch.build_string or ""
    if re.search("cuda|gpu", build):
        return "cuda"
    return "cpu" if "cpu" in build else None
