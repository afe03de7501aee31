"""``environment.yml`` as people have it: exported in any encoding, with ``prefix:``, repositories, and lines twice.

Unlike `tracelock.envs.spec`, which reads the project's own files strictly, this takes what conda takes and warns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from tracelock.envs.package import Package
from tracelock.envs.pip_lines import PipLines
from tracelock.envs.spec import Dependency, parse_dependency
from tracelock.errors import Problem, TracelockError
from tracelock.safe_yaml import compose, line_of, shortened


@dataclass(frozen=True)
class Exported:
    """What an ``environment.yml`` asks for.

    Parameters
    ----------
    options, unread
        Lines of its pip section that change what is installed without naming a package; files not read.
    """

    name: str | None
    channels: tuple[str, ...]
    packages: tuple[Package, ...]
    options: tuple[str, ...]
    unread: tuple[str, ...]
    warnings: tuple[Problem, ...]


def read_exported(path: Path, text: str, platform: str) -> Exported:
    """Return the packages of an ``environment.yml`` for a platform, and what was odd about it.

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
        what = f"names a folder of whoever wrote it: prefix: {shortened(top['prefix'].value)}"
        warnings.append(Problem(f"{path}:{line_of(top['prefix'])}", what, "it was ignored; remove the line"))
    found = list(_packages(path, dependencies, warnings))
    lines = PipLines(platform, _python(found))
    _pip_section(path, dependencies, lines)
    warnings += [*lines.bad, *lines.warnings]
    packages = _without_doubles([*found, *lines.packages], path, warnings)
    options, unread = tuple(dict.fromkeys(lines.options)), tuple(dict.fromkeys(lines.unread))
    name = top.get("name")
    channels = top.get("channels")
    return Exported(
        name=name.value if isinstance(name, yaml.ScalarNode) else None,
        channels=_words(channels),
        packages=tuple(packages),
        options=options,
        unread=unread,
        warnings=tuple(warnings),
    )


def _words(node: yaml.Node | None) -> tuple[str, ...]:
    items = node.value if isinstance(node, yaml.SequenceNode) else ()
    return tuple(item.value for item in items if isinstance(item, yaml.ScalarNode))


def _packages(path: Path, node: yaml.SequenceNode, warnings: list[Problem]) -> Iterator[tuple[int, Package]]:
    for item in node.value:
        where = f"{path}:{line_of(item)}"
        if isinstance(item, yaml.ScalarNode):
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


def _python(found: Sequence[tuple[int, Package]]) -> str | None:
    """Return the version of Python that the file asks for, as far as it says one: markers ask about it."""
    asked = next((package for _, package in found if package.name == "python"), None)
    said = re.match(r"=*(\d+\.\d+(?:\.\d+)?)", (asked.version or asked.constraint or "") if asked else "")
    return said[1] if said else None


def _pip_section(path: Path, node: yaml.SequenceNode, lines: PipLines) -> None:
    for section in (item for item in node.value if isinstance(item, yaml.MappingNode)):
        for key, value in section.value:
            items: list[Any] = value.value if key.value == "pip" and isinstance(value, yaml.SequenceNode) else []
            for item in items:
                if isinstance(item, yaml.ScalarNode):
                    lines.take(path, line_of(item), item.value)
                else:
                    lines.warnings.append(Problem(f"{path}:{line_of(item)}", "pip: expected a word", "it was left out"))


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
