"""A snapshot: what an environment holds, written so that somebody else can build it again, and nothing of its owner.

`conda env export` loses hashes, addresses, channel priority and what was asked for, turns a package from a repository
into a stranger's package of that name, and tells the user's path. None of that happens here; conda is not called.
Standard library only, Python 3.10 syntax.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tracelock.envs.asked import asked_for, channel_priority
from tracelock.envs.installed import Installed
from tracelock.envs.package import Package
from tracelock.io import schema, write_json, write_text

_PLAIN = re.compile(r"[A-Za-z0-9_][\w.+=<>!*/@:~-]*(?<!:)")
_PYTORCH_INDEX = "https://download.pytorch.org/whl/"


def write_snapshot(folder: Path, environment: str, installed: Installed, hashes: Mapping[str, Sequence[str]]) -> None:
    """Write ``environment.yml``, ``explicit.txt`` and ``packages.json`` to `folder`; for conda also one without builds.

    Parameters
    ----------
    hashes
        For pip packages: the archive digests that their lock allows, by name.
    """
    write_text(folder / "environment.yml", environment_yaml(environment, installed))
    if installed.kind == "conda":
        write_text(folder / "environment.nobuilds.yml", environment_yaml(environment, installed, builds=False))
    write_text(folder / "explicit.txt", explicit_list(installed, hashes))
    write_json(folder / "packages.json", packages_document(environment, installed))


def packages_document(environment: str, installed: Installed) -> dict[str, Any]:
    """Return the document ``tracelock/packages/1``."""
    unknown: dict[str, str] = {}
    return {
        "schema": schema("packages"),
        "environment": environment,
        "kind": installed.kind,
        "python": installed.python,
        "digest": installed.digest,
        "packages": [package.to_json() for package in installed.packages],
        "channels": channels(installed.conda),
        "channel_priority": channel_priority(installed.prefix, unknown) if installed.kind == "conda" else None,
        "asked": asked_for(installed) if installed.kind == "conda" else None,
        "unreproducible": {p.name: p.unreproducible for p in installed.packages if p.unreproducible},
        "unknown": unknown,
    }


def channel_of(package: Package) -> str | None:
    """Return a conda package's channel by its short name where it has one, else its address without the platform."""
    text = package.channel or (package.url or "").rpartition("/")[0]
    text = re.sub(r"/(noarch|linux-\w+|osx-\w+|win-\w+)/?$", "", text.rstrip("/"))
    text = re.sub(r"^https?://conda\.anaconda\.org/", "", text)
    return re.sub(r"^https?://repo\.anaconda\.com/", "", text) or None


def channels(packages: Iterable[Package]) -> list[str]:
    """Return the channels, the one with the fewest packages first: special channels stand before general ones.

    Neither conda's records nor its history keep the order in which channels were searched. Where channels are
    mixed, `environment_yaml` therefore names the channel of each package.
    """
    names = [name for name in map(channel_of, packages) if name]
    return sorted(set(names), key=lambda name: (names.count(name), name))


def environment_yaml(environment: str, installed: Installed, builds: bool = True) -> str:
    """Return an ``environment.yml`` without ``prefix:`` that recreates the environment.

    Parameters
    ----------
    builds
        Whether conda's build strings are written: with them it is exact, without them other platforms can use it.
    """
    found = channels(installed.conda) or ["conda-forge"]
    if not any(name.startswith("pkgs/") or name == "defaults" for name in found):
        found.append("nodefaults")
    lines = [f"name: {_quoted(environment)}", "channels:", *(f"  - {_quoted(name)}" for name in found), "dependencies:"]
    lines += [f"  - {_quoted(spec)}" for spec in _conda_specs(installed, builds, mixed=len(found) > 2)]
    if pip := list(_pip_lines(installed.pip)):
        lines += ["  - pip:", *pip]
    return "\n".join(lines) + "\n"


def _conda_specs(installed: Installed, builds: bool, mixed: bool) -> Iterator[str]:
    if installed.kind == "venv":
        yield from [f"python={installed.python}" if installed.python else "python", "pip"]
    for package in installed.conda:
        channel = channel_of(package)
        place = f"{channel}::" if mixed and channel and "://" not in channel else ""
        build = f"={package.build}" if builds and package.build else ""
        yield f"{place}{package.name}={package.version}{build}"
    if installed.kind == "conda" and installed.pip and all(package.name != "pip" for package in installed.conda):
        yield "pip"


def _pip_lines(packages: Sequence[Package]) -> Iterator[str]:
    """Yield the lines of the section ``pip:``; what nobody else can install stands there as a comment."""
    for index in pytorch_indexes(packages):
        yield f"      - {_quoted(f'--extra-index-url {index}')}"
    for package in packages:
        requirement = pip_requirement(package)
        comment = f"      # {package.name}=={package.version}: {package.unreproducible}; install it yourself"
        yield f"      - {_quoted(requirement)}" if requirement else comment


def pytorch_indexes(packages: Iterable[Package]) -> list[str]:
    """Return PyTorch's own indexes that builds such as ``2.5.1+cu118`` come from: no other index has them."""
    labels = {(package.version or "").partition("+")[2] for package in packages if package.name.startswith("torch")}
    return [_PYTORCH_INDEX + label for label in sorted(labels) if re.fullmatch(r"cpu|cu\d+|rocm[\d.]+|xpu", label)]


def pip_requirement(package: Package) -> str | None:
    """Return pip's line for a package, with repository and commit where it came from one (PEP 440, 508, 610).

    ``None`` for what was installed from a file or folder of this machine: its name and version alone would bring a
    stranger's package.
    """
    direct = package.direct_url
    if package.unreproducible:
        return None
    if direct is None:
        return f"{package.name}=={package.version}"
    url = str(direct["url"])
    if vcs := direct.get("vcs_info"):
        url = f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
    fragments = [f"subdirectory={direct['subdirectory']}"] if direct.get("subdirectory") else []
    fragments += [f"sha256={package.sha256}"] if package.sha256 and not vcs else []
    return f"{package.name} @ {url}" + (f"#{'&'.join(fragments)}" if fragments else "")


def _quoted(text: str) -> str:
    """Return `text` as a YAML scalar; JSON's strings are YAML's."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def explicit_list(installed: Installed, hashes: Mapping[str, Sequence[str]]) -> str:
    """Return the list from which conda, or for a venv pip, builds exactly this.

    A package without a known address, and pip packages of a conda prefix, which such a list cannot hold, stand
    there as comments.
    """
    if installed.kind == "venv":
        lines = [_hashed_requirement(package, hashes.get(package.name, ())) for package in installed.pip]
        indexes = [f"--extra-index-url {index}" for index in pytorch_indexes(installed.pip)]
        return "\n".join([f"# python: {installed.python}", *indexes, *lines]) + "\n"
    # Clients link in this order, and a noarch package needs Python there.
    ordered = sorted(installed.conda, key=lambda p: (p.name != "python", p.subdir == "noarch", p.name))
    lines = [explicit_line(package) for package in ordered]
    lines += [f"# pip: {_hashed_requirement(p, hashes.get(p.name, ())).lstrip('# ')}" for p in installed.pip]
    subdirs = sorted({package.subdir for package in installed.conda if package.subdir} - {"noarch"})
    return "\n".join([f"# platform: {', '.join(subdirs) or 'noarch'}", "@EXPLICIT", *lines]) + "\n"


def explicit_line(package: Package) -> str:
    """Return a conda package's line of an explicit list: address and ``#sha256:``, or else MD5."""
    if not package.url:
        return f"# {package.name} {package.version} {package.build}: its record has no address"
    tail = f"#sha256:{package.sha256}" if package.sha256 else f"#{package.md5}" if package.md5 else ""
    return package.url + tail


def _hashed_requirement(package: Package, hashes: Sequence[str]) -> str:
    requirement = pip_requirement(package)
    if requirement is None:
        return f"# {package.name}=={package.version}: {package.unreproducible}"
    known = "" if package.direct_url else "".join(f" --hash=sha256:{sha}" for sha in hashes)
    return requirement + known
