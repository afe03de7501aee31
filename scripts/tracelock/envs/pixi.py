"""``pixi.lock``: one of the environments that a pixi project locks, on one platform.

The format is rattler-lock's, versions 4 to 7: ``environments`` names archives by address for each platform, and
``packages`` says the rest of each once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tracelock.envs.installed import without_login
from tracelock.envs.manifest import Manifest, explicit_package
from tracelock.envs.package import Package, pip_name
from tracelock.envs.pip_lines import archive_name, pip_requirement_package
from tracelock.errors import Problem, TracelockError, nearest
from tracelock.safe_yaml import load, shortened

_VERSIONS = (4, 5, 6, 7)
_DEFAULT = "default"
_FOLDER = "a folder of its writer's machine"


def read_pixi(path: Path, text: str, platform: str, environment: str | None = None) -> Manifest:
    """Read one environment of a ``pixi.lock``.

    Parameters
    ----------
    environment
        Its name; ``default``, or the only one there is, if ``None``.

    Raises
    ------
    TracelockError
        If the file is damaged or of another version, or has no such environment or platform.
    """
    document = load(text, path)
    if not isinstance(document, dict) or document.get("version") not in _VERSIONS:
        version = shortened(document.get("version") if isinstance(document, dict) else None)
        what = f"is of pixi's lock format {version}, expected {_VERSIONS[0]} to {_VERSIONS[-1]}"
        raise TracelockError(Problem(str(path), what, "make it anew: pixi lock"))
    known = document.get("environments")
    name, chosen = _environment(path, known if isinstance(known, dict) else {}, environment)
    details = {_address(entry): entry for entry in _entries(document.get("packages"))}
    problems: list[Problem] = []
    packages = [_package(path, entry, details, problems) for entry in _entries(_platform(path, name, chosen, platform))]
    if problems:
        raise TracelockError(problems)
    found = tuple(sorted((package for package in packages if package), key=lambda package: package.key))
    return Manifest("pixi", f"{path}@{name}", found, warnings=_folders(path, found))


def _environment(path: Path, known: Mapping[str, Any], wanted: str | None) -> tuple[str, Any]:
    names = [str(name) for name in known]
    name = wanted or (names[0] if len(names) == 1 else _DEFAULT)
    if name not in known:
        hint = nearest(name, names) or f"{path}@NAME, one of: {', '.join(names) or 'none'}"
        raise TracelockError(Problem(str(path), f"has no environment '{shortened(name)}'", hint))
    return name, known[name]


def _platform(path: Path, name: str, environment: Any, platform: str) -> Any:
    packages = environment.get("packages") if isinstance(environment, dict) else None
    known = packages if isinstance(packages, dict) else {}
    if platform not in known:
        what = f"locks '{name}' for {', '.join(map(str, known)) or 'no platform'}, not for {platform}"
        raise TracelockError(
            Problem(str(path), what, "add it to platforms in pixi.toml, then pixi lock; or --platform")
        )
    return known[platform]


def _entries(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _address(entry: Mapping[str, Any]) -> str:
    # Up to version 5 an entry of `packages` says its kind and its address in keys of their own.
    return str(entry.get("conda") or entry.get("pypi") or entry.get("url") or entry.get("path"))


def _package(
    path: Path, entry: Mapping[str, Any], details: Mapping[str, dict[str, Any]], problems: list[Problem]
) -> Package | None:
    address = _address(entry)
    more = details.get(address, {})
    if "pypi" in entry:
        return _pip_package(address, more)
    if "conda" not in entry:
        what = f"'{shortened(next(iter(entry), ''))}' is a kind of package that is not known here"
        problems.append(Problem(str(path), what, "expected conda or pypi"))
        return None
    if "://" not in address:
        name = _text(more, "name") or Path(address).name
        return Package(name, _text(more, "version"), build=_text(more, "build"), unreproducible=_FOLDER)
    package = explicit_package(without_login(address))
    if package is None:
        problems.append(Problem(str(path), f"'{shortened(address)}' is no address of a conda package"))
        return None
    return replace(package, md5=_text(more, "md5"), sha256=_text(more, "sha256"))


def _pip_package(address: str, more: Mapping[str, Any]) -> Package:
    """Return a package of PyPI; its name and version stand beside it, else in the archive's name."""
    repository = pip_requirement_package(address) if address.startswith("git+") else None
    name, version = archive_name(address)
    local = "://" not in address
    found = repository or Package(pip_name(name or address), version, "pip")
    return replace(
        found,
        name=pip_name(_text(more, "name") or found.name),
        version=_text(more, "version") or found.version,
        sha256=_text(more, "sha256"),
        unreproducible=_FOLDER if local else None,
    )


def _text(entry: Mapping[str, Any], key: str) -> str | None:
    return str(entry[key]) if entry.get(key) is not None else None


def _folders(path: Path, packages: tuple[Package, ...]) -> tuple[Problem, ...]:
    return tuple(
        Problem(str(path), f"{package.name} is a folder of the project", "its files are not part of the lock")
        for package in packages
        if package.unreproducible
    )
