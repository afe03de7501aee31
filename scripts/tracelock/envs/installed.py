"""What is installed in a prefix: conda's records and the metadata of Python's distributions, read from the files.

No program is called, so that it works on the prefix of another Python, of a broken one, and without conda.
Standard library only, Python 3.10 syntax.
"""

from __future__ import annotations

import csv
import json
import platform
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from tracelock.envs.package import Package, conda_name, environment_digest, is_direct_url, pip_name, split_url
from tracelock.errors import Problem, TracelockError
from tracelock.io import digest

_PIP_BOOKKEEPING = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}


@dataclass(frozen=True)
class Installed:
    """The content of a conda prefix or of a venv.

    Parameters
    ----------
    records
        conda's own records, by file name in ``conda-meta``; empty for a venv.
    packages
        Conda packages, then the Python distributions that no conda package brought.
    site_packages
        The folders in which the distributions were found, the prefix's own first.
    damaged
        Records that cannot be read, each with the reason.
    """

    prefix: Path
    kind: Literal["conda", "venv"]
    python: str | None
    records: Mapping[str, Mapping[str, Any]]
    packages: tuple[Package, ...]
    site_packages: tuple[Path, ...]
    damaged: tuple[Problem, ...] = ()

    @property
    def conda(self) -> tuple[Package, ...]:
        """Return the conda packages."""
        return tuple(package for package in self.packages if package.manager == "conda")

    @property
    def pip(self) -> tuple[Package, ...]:
        """Return the distributions that no conda package brought."""
        return tuple(package for package in self.packages if package.manager == "pip")

    @property
    def digest(self) -> str:
        """Return the digest of the packages and, for a venv, of Python's version."""
        return environment_digest(self.packages, self.python if self.kind == "venv" else None)


def is_prefix(path: Path) -> bool:
    """Return whether `path` is a conda prefix, a venv, or another prefix with a Python of its own."""
    return (path / "conda-meta").is_dir() or (path / "pyvenv.cfg").is_file() or bool(_own_site_packages(path))


def read_installed(prefix: Path) -> Installed:
    """Read what is installed in `prefix`.

    Raises
    ------
    TracelockError
        If `prefix` is neither a conda prefix nor a venv.
    """
    if not is_prefix(prefix):
        hint = "a conda prefix holds conda-meta/, a venv pyvenv.cfg" if prefix.is_dir() else "no such folder"
        raise TracelockError(Problem(str(prefix), "is neither a conda prefix nor a venv", hint))
    conda = (prefix / "conda-meta").is_dir()
    damaged: list[Problem] = []
    records = dict(_conda_records(prefix, damaged)) if conda else {}
    folders = _site_packages(prefix)
    owned = {path for record in records.values() for path in record.get("files") or ()}
    pip = {package.name: package for package in reversed(list(_distributions(prefix, folders, owned, damaged)))}
    packages = [conda_package(record) for record in records.values()] + list(pip.values())
    return Installed(
        prefix=prefix,
        kind="conda" if conda else "venv",
        python=_python_version(prefix, records),
        records=records,
        packages=tuple(sorted(packages, key=lambda package: package.key)),
        site_packages=folders,
        damaged=tuple(damaged),
    )


def conda_package(record: Mapping[str, Any]) -> Package:
    """Return the package that one of conda's records (``conda-meta``, ``repodata.json``) describes."""
    return Package(
        name=conda_name(record["name"]),
        version=str(record["version"]),
        build=str(record.get("build") or record.get("build_string") or ""),
        channel=without_login(record["channel"]) if record.get("channel") else None,
        subdir=record.get("subdir"),
        url=without_login(record["url"]) if record.get("url") else None,
        md5=record.get("md5"),
        sha256=record.get("sha256"),
    )


def without_login(url: str) -> str:
    """Return `url` without a user's name, password or channel token; the user of ssh belongs to its address."""
    try:
        parts = urlsplit(url)
    except ValueError:  # brackets of an address that is none
        return re.sub(r"//[^/@]*@", "//", url)
    if parts.scheme.endswith("ssh"):
        return url
    host = parts.netloc.rpartition("@")[2]
    path = re.sub(r"^/t/[^/]+", "", parts.path)
    return urlunsplit(parts._replace(netloc=host, path=path)) if parts.netloc else url


def _conda_records(prefix: Path, damaged: list[Problem]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted((prefix / "conda-meta").glob("*.json")):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            damaged.append(Problem(str(path), f"is no record of a package: {error}", "create the environment anew"))
            continue
        # Other programs keep files of their own here; a record names its package.
        if isinstance(record, dict) and {"name", "version"} <= record.keys():
            if _is_record(record):
                yield path.name, record
            else:
                damaged.append(Problem(str(path), "is no whole record of a package", "create the environment anew"))


def _is_record(record: Mapping[str, Any]) -> bool:
    """Return whether the fields of one of conda's records that are used here are of their kinds."""
    texts = [record.get(key) for key in ("build", "channel", "subdir", "url", "md5", "sha256")]
    files = record.get("files") or []
    data = record.get("paths_data") or {}
    paths = (data.get("paths") or []) if isinstance(data, dict) else None
    return (
        all(isinstance(record[key], str) and record[key] for key in ("name", "version"))
        and all(text is None or isinstance(text, str) for text in texts)
        and all(isinstance(listed, list) for listed in (files, paths))
        and all(isinstance(file, str) for file in files)
        and all(isinstance(entry, dict) and isinstance(entry.get("_path"), str) for entry in paths or ())
    )


def _own_site_packages(prefix: Path) -> list[Path]:
    # Debian's own Python keeps its packages in two other places.
    patterns = ("lib/python3*/site-packages", "local/lib/python3.*/dist-packages", "lib/python3/dist-packages")
    return [folder for pattern in patterns for folder in sorted(prefix.glob(pattern)) if folder.is_dir()]


def _site_packages(prefix: Path) -> tuple[Path, ...]:
    """Return the folders of distributions; for a venv with system packages those of its base, after its own."""
    folders = _own_site_packages(prefix)
    settings = venv_settings(prefix)
    if settings.get("include-system-site-packages", "false").lower() == "true" and "home" in settings:
        folders += _own_site_packages(Path(settings["home"]).parent)
    return tuple(dict.fromkeys(folders))


def venv_settings(prefix: Path) -> dict[str, str]:
    """Return the keys of a venv's ``pyvenv.cfg``; empty where there is none."""
    try:
        lines = (prefix / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    pairs = (line.partition("=") for line in lines if "=" in line)
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def _python_version(prefix: Path, records: Mapping[str, Mapping[str, Any]]) -> str | None:
    conda = next((str(record["version"]) for record in records.values() if record["name"] == "python"), None)
    settings = venv_settings(prefix)
    found = re.match(r"[\d.]+\d", settings.get("version", settings.get("version_info", "")))
    running = platform.python_version() if prefix.resolve() == Path(sys.prefix).resolve() else None
    return conda or (found.group() if found else running)


def pip_metadata(installed: Installed) -> Iterator[tuple[Path, Path, str]]:
    """Yield (site-packages, ``*.dist-info``, name) of the distributions that no conda package brought."""
    owned = {path for record in installed.records.values() for path in record.get("files") or ()}
    for folder, path in _metadata_folders(installed.prefix, installed.site_packages, owned):
        if name := _distribution_name(Distribution.at(path)):
            yield folder, path, pip_name(name)


def _metadata_folders(prefix: Path, folders: Sequence[Path], owned: set[str]) -> Iterator[tuple[Path, Path]]:
    for folder in folders:
        for path in sorted([*folder.glob("*.dist-info"), *folder.glob("*.egg-info")]):
            if not _owner_is_conda(path, prefix, owned):
                yield folder, path


def _distribution_name(distribution: Distribution) -> str | None:
    # The email parser answers a missing key with None, whatever its types say; newer releases raise.
    try:
        name: str | None = distribution.metadata["Name"]
    except KeyError:
        return None
    return name


def _distributions(prefix: Path, folders: Sequence[Path], owned: set[str], damaged: list[Problem]) -> Iterator[Package]:
    """Yield the distributions that no conda package brought; the one that Python imports comes first."""
    for _, path in _metadata_folders(prefix, folders, owned):
        distribution = Distribution.at(path)
        if name := _distribution_name(distribution):
            yield _pip_package(distribution, name, path, damaged)
        else:
            damaged.append(Problem(str(path), "has no name in its metadata", "left behind by a broken pip run"))


def _owner_is_conda(path: Path, prefix: Path, owned: set[str]) -> bool:
    if not path.is_relative_to(prefix):
        return False
    relative = path.relative_to(prefix).as_posix()
    return any(f"{relative}{tail}" in owned for tail in ("", "/METADATA", "/PKG-INFO", "/RECORD"))


def _direct_url(distribution: Distribution, path: Path, damaged: list[Problem]) -> dict[str, Any] | None:
    text = distribution.read_text("direct_url.json")
    try:
        value = json.loads(text) if text else None
    except ValueError:
        value = {}
    if value is None or is_direct_url(value):
        return _without_secrets(value) if value else None
    damaged.append(Problem(str(path / "direct_url.json"), "is not as PEP 610 has it: where it came from is unknown"))
    return None


def _pip_package(distribution: Distribution, name: str, path: Path, damaged: list[Problem]) -> Package:
    direct = _direct_url(distribution, path, damaged)
    return Package(
        name=pip_name(name),
        version=distribution.version,
        manager="pip",
        installer=(distribution.read_text("INSTALLER") or "").strip() or None,
        sha256=_archive_sha256(direct),
        direct_url=direct,
        files_sha256=_files_digest(distribution.read_text("RECORD")),
        unreproducible=_unreproducible(direct),
    )


def _without_secrets(direct: dict[str, Any]) -> dict[str, Any]:
    """Return PEP 610's data without a login in its URL, and without the path of a folder on this machine."""
    url = str(direct.get("url", ""))
    local = url.startswith("file:")
    return {**direct, "url": f"file:///…/{Path(split_url(url).path).name}" if local else without_login(url)}


def _archive_sha256(direct: Mapping[str, Any] | None) -> str | None:
    archive = (direct or {}).get("archive_info") or {}
    old = str(archive.get("hash", ""))
    found = (archive.get("hashes") or {}).get("sha256") or (old[7:] if old.startswith("sha256=") else None)
    return str(found) if found else None


def _unreproducible(direct: Mapping[str, Any] | None) -> str | None:
    if direct is None or not str(direct.get("url", "")).startswith("file:"):
        return None
    if (direct.get("dir_info") or {}).get("editable"):
        return "installed from a folder of this machine, editable"
    return "installed from a file or folder of this machine"


def record_rows(text: str | None) -> list[tuple[str, str]]:
    """Return (path relative to site-packages, ``sha256=…``) of a distribution's ``RECORD``, as PEP 376 has it."""
    rows = csv.reader((text or "").splitlines())
    return [(row[0], row[1]) for row in rows if len(row) >= 2]


def _files_digest(text: str | None) -> str | None:
    """Return the digest of the files in ``RECORD`` that do not depend on the prefix or on who installed them."""
    rows = [
        (path, sha)
        for path, sha in record_rows(text)
        if sha and not path.startswith("..") and path.rpartition("/")[2] not in _PIP_BOOKKEEPING
    ]
    return digest(sorted(rows)) if rows else None
