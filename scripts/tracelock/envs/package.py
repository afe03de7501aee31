"""A package as any record of it tells: an installed prefix, a lock, a pin file, an exported list.

Standard library only, Python 3.10 syntax: the check of an environment runs inside that environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal
from urllib.parse import SplitResult, urlsplit

from tracelock.io import digest

Manager = Literal["conda", "pip"]

# What decides the speed of a training job comes first in every table of differences.
_SPEED: tuple[tuple[str, str], ...] = (
    ("torch", r"(py)?torch|pytorch-.*|torch-.*|torchvision|torchaudio|torchtriton|triton|libtorch"),
    (
        "cuda",
        r"cuda.*|cudatoolkit|libcu(?!dnn|rl).*|libnpp.*|libnvjpeg.*|libnvjitlink.*|nvidia-(?!cudnn|nccl|ml-py|dali).*",
    ),
    ("cudnn", r".*cudnn.*|.*nccl.*"),
    ("mkl", r"mkl.*|intel-mkl|.*blas.*|liblapack.*|blis|onednn|mkldnn"),
    ("openmp", r".*openmp.*|libgomp|_openmp_mutex|tbb"),
    (
        "data",
        r"pillow(-simd)?|libjpeg-turbo|(py-|lib)?opencv.*|ffmpeg|av|pyav|decord|torchdata|torchcodec|nvidia-dali.*|"
        r"h5py|hdf5|lmdb|python-lmdb|pyarrow.*|zarr|webdataset|datasets|tokenizers|albumentations|kornia",
    ),
    ("python", r"python|cpython|python_abi|numpy"),
)
_TIERS: tuple[tuple[str, re.Pattern[str]], ...] = tuple((tier, re.compile(pattern)) for tier, pattern in _SPEED)


@dataclass(frozen=True)
class Package:
    """One package of an environment; a field that its source does not tell is ``None``.

    Parameters
    ----------
    name
        Normalised: lower case for conda; as PEP 503 has it for pip.
    version, build
        As recorded; `build` is conda's build string and ``None`` for pip.
    constraint
        Where a source only asks for a range of versions: that range.
    md5, sha256
        Of the archive, hexadecimal.
    direct_url
        For pip: the content of ``direct_url.json`` (PEP 610), or ``None`` for a package from an index.
    files_sha256
        For pip: identity of the installed files, from ``RECORD``, independent of the prefix.
    unreproducible
        Why nobody else can install this package, or ``None``.
    """

    name: str
    version: str | None
    manager: Manager = "conda"
    build: str | None = None
    channel: str | None = None
    subdir: str | None = None
    url: str | None = None
    md5: str | None = None
    sha256: str | None = None
    installer: str | None = None
    direct_url: Mapping[str, Any] | None = None
    files_sha256: str | None = None
    unreproducible: str | None = None
    constraint: str | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Return what makes two records speak of the same package: manager and name."""
        return (self.manager, self.name)

    def to_json(self) -> dict[str, Any]:
        """Return the fields that are known, for ``packages.json``."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Package:
        """Return the package that `to_json` described.

        Raises
        ------
        ValueError
            If a field is of another kind.
        """
        fields = {key: value[key] for key in cls.__dataclass_fields__ if value.get(key) is not None}
        for key, found in fields.items():
            if not isinstance(found, dict if key == "direct_url" else str):
                raise ValueError(f"{key} is no {'object' if key == 'direct_url' else 'text'}")
        if not fields.get("name") or fields.get("manager", "conda") not in ("conda", "pip"):
            raise ValueError("has no name, or is neither of conda nor of pip")
        if "direct_url" in fields and not is_direct_url(fields["direct_url"]):
            raise ValueError("direct_url is not as PEP 610 has it")
        return cls(**{"version": None, **fields})


def is_direct_url(value: object) -> bool:
    """Return whether a value has the shape of ``direct_url.json`` (PEP 610), as far as it is used here."""
    if not isinstance(value, dict) or not isinstance(value.get("url"), str):
        return False
    inner = {key: value.get(key) or {} for key in ("vcs_info", "archive_info", "dir_info")}
    if not all(isinstance(one, dict) for one in inner.values()):
        return False
    vcs = inner["vcs_info"]
    texts = [vcs.get("vcs", ""), vcs.get("commit_id") or "", value.get("subdirectory") or ""]
    hashes = inner["archive_info"].get("hashes") or {}
    return (
        all(isinstance(text, str) for text in texts)
        and isinstance(hashes, dict)
        and all(isinstance(one, str) for one in hashes.values())
        and ("vcs" in vcs or not vcs)
    )


def split_url(url: str) -> SplitResult:
    """Return the parts of an address; one that is none (``https://[``) has an empty host and path."""
    try:
        return urlsplit(url)
    except ValueError:
        return SplitResult(url.partition(":")[0], "", "", "", "")


def conda_name(name: str) -> str:
    """Return a conda package's name as conda compares it."""
    return name.strip().lower()


def pip_name(name: str) -> str:
    """Return a Python distribution's normalised name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def speed_tier(name: str) -> str:
    """Return what a package means for speed: torch, cuda, cudnn, mkl, openmp, data, python or other."""
    return next((tier for tier, pattern in _TIERS if pattern.fullmatch(name)), "other")


def speed_rank(name: str) -> tuple[int, str]:
    """Return a sort key that puts what decides the speed first, then the alphabet."""
    order = [tier for tier, _ in _TIERS]
    tier = speed_tier(name)
    return (order.index(tier) if tier in order else len(order), name)


def environment_digest(packages: Iterable[Package], python: str | None = None) -> str:
    """Return an environment's digest: SHA-256 over its sorted (manager, name, version, build, hash).

    The hash is that of the archive, or else of the installed files. Two prefixes with the same packages have the
    same digest wherever they lie and whichever program built them.

    Parameters
    ----------
    python
        Version of the interpreter where it is no package of the environment (a venv).
    """
    rows = [[p.manager, p.name, p.version or "", p.build or "", _identity(p)] for p in packages]
    return digest(sorted(rows + ([["python", "python", python, "", ""]] if python else [])))


def _identity(package: Package) -> str:
    # The files of a local installation hold this machine's paths.
    return package.sha256 or (package.files_sha256 if not package.unreproducible else None) or ""


def completed(packages: Sequence[Package], locked: Iterable[Package]) -> tuple[Package, ...]:
    """Return `packages`, each with what its lock entry tells and its own record does not.

    Some clients do not record the hash of a package from an explicit list, although they compared it. The address
    becomes the lock's, because a mirror's is of no use elsewhere.
    """
    known = {(p.key, p.version, p.build): p for p in locked}
    return tuple(_completed(package, known.get((package.key, package.version, package.build))) for package in packages)


def _completed(package: Package, entry: Package | None) -> Package:
    if entry is None or (package.sha256 and entry.sha256 and package.sha256 != entry.sha256):
        return package
    return replace(
        package,
        url=entry.url or package.url,
        channel=entry.channel or package.channel,
        md5=package.md5 or entry.md5,
        sha256=package.sha256 or entry.sha256,
    )
