"""``environment.yml`` as people have it: exported in any encoding, with ``prefix:``, repositories, and lines twice.

Unlike `tracelock.envs.spec`, which reads the project's own files strictly, this takes what conda takes and warns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from tracelock.envs.installed import without_login
from tracelock.envs.package import Package, pip_name
from tracelock.envs.spec import Dependency, parse_dependency
from tracelock.errors import Problem, TracelockError
from tracelock.safe_yaml import compose, line_of

_VCS = re.compile(
    r"(?:(?P<name>[\w.-]+)(?:\[[^\]]*\])?\s*@\s*)?(?P<vcs>git|hg|svn|bzr)\+(?P<url>[^\s#]+)(?:#(?P<tail>\S+))?"
)
_PIP = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*(?P<rest>.*)")


def read_exported(path: Path, text: str) -> tuple[list[Package], list[Problem]]:
    """Return the packages of an ``environment.yml`` and what was odd about it.

    Raises
    ------
    TracelockError
        If it is no YAML with a list of dependencies.
    """
    root = compose(text, path)
    top = {key.value: value for key, value in root.value} if isinstance(root, yaml.MappingNode) else {}
    dependencies = top.get("dependencies")
    if not isinstance(dependencies, yaml.SequenceNode):
        raise TracelockError(Problem(str(path), "has no list of dependencies", "expected an environment.yml"))
    warnings = []
    if "prefix" in top:
        what = f"names a folder of whoever wrote it: prefix: {top['prefix'].value}"
        warnings.append(Problem(f"{path}:{line_of(top['prefix'])}", what, "it was ignored; remove the line"))
    return _without_doubles(list(_packages(path, dependencies, warnings)), path, warnings), warnings


def _packages(path: Path, node: yaml.SequenceNode, warnings: list[Problem]) -> Iterator[tuple[int, Package]]:
    for item in node.value:
        where = f"{path}:{line_of(item)}"
        if isinstance(item, yaml.MappingNode):
            yield from _pip_packages(path, item, warnings)
        elif isinstance(item, yaml.ScalarNode):
            try:
                yield line_of(item), conda_requirement(parse_dependency(item.value, line_of(item)))
            except ValueError as error:
                warnings.append(Problem(where, str(error), "it was left out"))


def conda_requirement(asked: Dependency) -> Package:
    """Return what a line asks for as a package: its version where it names exactly one, else a range."""
    exact = bool(asked.version) and re.fullmatch(r"[\w.+!-]+", asked.version) is not None
    return Package(
        name=asked.name,
        version=asked.version if exact else None,
        build=asked.build,
        channel=asked.channel,
        constraint=None if exact else asked.version or "*",
    )


def _pip_packages(path: Path, node: yaml.MappingNode, warnings: list[Problem]) -> Iterator[tuple[int, Package]]:
    for key, value in node.value:
        items: list[Any] = value.value if key.value == "pip" and isinstance(value, yaml.SequenceNode) else []
        for item in items:
            text = str(item.value).split(" #")[0].strip()
            package = pip_requirement_package(text)
            if package:
                yield line_of(item), package
            elif not text.startswith("-"):
                warnings.append(Problem(f"{path}:{line_of(item)}", f"'{text}' is no requirement", "it was left out"))


def pip_requirement_package(text: str) -> Package | None:
    """Return the package of a line of a pip section, or ``None`` for an option or what is no requirement.

    A repository without a name takes that of its folder, as ``git+https://host/someone/apex.git``.
    """
    text = re.sub(r"^(-e|--editable)[ =]", "", text).strip()
    if found := _VCS.match(text):
        return _vcs_package(found)
    found = _PIP.fullmatch(text.partition(";")[0].strip())
    if not found:
        return None
    name, rest = pip_name(found["name"]), found["rest"].replace(" ", "")
    if rest.startswith("@"):
        url, _, tail = rest[1:].partition("#")
        sha = re.search(r"sha256=([0-9a-f]{64})", tail)
        return Package(name, None, "pip", sha256=sha[1] if sha else None, direct_url={"url": url, "archive_info": {}})
    exact = re.fullmatch(r"={2,3}([\w.+!-]+)", rest)
    return Package(name, exact[1] if exact else None, "pip", constraint=None if exact else rest or "*")


def _vcs_package(found: re.Match[str]) -> Package:
    address, _, revision = (
        found["url"].rpartition("@") if "@" in found["url"].rpartition("/")[2] else (found["url"], "", "")
    )
    egg = re.search(r"egg=([\w.-]+)", found["tail"] or "")
    name = found["name"] or (egg[1] if egg else address.rstrip("/").rpartition("/")[2].removesuffix(".git"))
    vcs = {"vcs": found["vcs"], "commit_id": revision or None}
    return Package(pip_name(name), None, "pip", direct_url={"url": without_login(address), "vcs_info": vcs})


def _without_doubles(found: list[tuple[int, Package]], path: Path, warnings: list[Problem]) -> list[Package]:
    """Return one package for each name; a later line that says more wins, as it does for conda."""
    kept: dict[tuple[str, str], Package] = {}
    for line, package in found:
        first = kept.get(package.key)
        if first is not None:
            same = replace(first, channel=None) == replace(package, channel=None)
            what = f"{package.name} stands here a second time" + ("" if same else " and asks for something else")
            warnings.append(Problem(f"{path}:{line}", what, "the last line counts"))
        kept[package.key] = package
    both = {name for manager, name in kept if manager == "conda"} & {n for manager, n in kept if manager == "pip"}
    for name in sorted(both):
        warnings.append(Problem(str(path), f"{name} is asked of conda and of pip", "Python imports pip's"))
    return list(kept.values())
