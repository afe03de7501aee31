"""What is asked for: ``envs/<name>.yaml``, read with the line of everything and in conda's own grammar."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tracelock.errors import Problem, TracelockError, nearest
from tracelock.safe_yaml import compose, line_of, shortened

# conda's keys, and those that conda-lock adds.
KEYS = ("name", "channels", "dependencies", "variables", "prefix", "platforms", "category")
CHANNEL_HOST = "https://conda.anaconda.org/"
PLATFORMS = ("linux-64", "linux-aarch64", "linux-ppc64le", "osx-64", "osx-arm64", "win-64")

_SELECTOR = re.compile(r"^\s*-.*#.*\[(\w+)\]\s*$")
_NAME = re.compile(r"(?:([^\s:=<>!~]+(?:://[^\s]+?)?)::)?([A-Za-z0-9_][\w.-]*)\s*(.*)")
# A version, then perhaps a build after a blank or `=`; as in conda, `=` inside an operator does not start a build.
_VERSION_BUILD = re.compile(r"(.+?[^><!,|]?)(?:(?<![=!|,<>~])[ =]\s*([^-=,|<>~]+?))?")


@dataclass(frozen=True)
class Line:
    """A word of the file and the line (from 1) on which it stands."""

    text: str
    line: int


@dataclass(frozen=True)
class Dependency:
    """One line below ``dependencies``.

    Parameters
    ----------
    version, build
        As conda normalises them (``python=3.10`` asks for ``3.10.*``); empty and ``None`` where nothing is asked.
    channel
        The channel named before ``::``, or ``None``.
    """

    name: str
    version: str
    build: str | None
    channel: str | None
    text: str
    line: int


@dataclass(frozen=True)
class EnvSpec:
    """An environment as it is asked for.

    Parameters
    ----------
    pip
        The lines of a pip section.
    platforms
        Those that the file names; conda-lock's key.
    """

    path: Path
    name: str | None
    channels: tuple[Line, ...]
    dependencies: tuple[Dependency, ...]
    pip: tuple[Line, ...]
    platforms: tuple[str, ...]
    category: str

    def where(self, line: int | None = None) -> str:
        """Return the place of a problem: the file, and the line where there is one."""
        return f"{self.path}:{line}" if line else str(self.path)

    def dependency(self, name: str) -> Dependency | None:
        """Return the (last) line that asks for a package."""
        return next((asked for asked in reversed(self.dependencies) if asked.name == name), None)


def read_spec(path: Path) -> EnvSpec:
    """Read an environment file.

    Raises
    ------
    TracelockError
        With everything that is wrong with it, each with its line.
    """
    text = read_text(path)
    root = compose(text, path)
    problems: list[Problem] = []
    top = dict(_mapping(root, path, problems))
    _selectors(path, text, problems)
    dependencies, pip = _dependencies(top.get("dependencies"), path, problems)
    spec = EnvSpec(
        path=path,
        name=_scalar(top.get("name")),
        channels=tuple(_lines(top.get("channels"), path, "channels", problems)),
        dependencies=tuple(dependencies),
        pip=tuple(pip),
        platforms=tuple(word.text for word in _platforms(top.get("platforms"), path, problems)),
        category=_scalar(top.get("category")) or "main",
    )
    if "dependencies" not in top and not problems:
        problems.append(Problem(str(path), "has no dependencies", "add a list below 'dependencies:'"))
    if problems:
        raise TracelockError(problems)
    return spec


def read_text(path: Path) -> str:
    """Return a file's text (UTF-8).

    Raises
    ------
    TracelockError
        If it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise TracelockError(Problem(str(path), f"cannot be read: {error.strerror}")) from None
    except UnicodeDecodeError as error:
        hint = "save it as UTF-8"
        raise TracelockError(Problem(str(path), f"is not UTF-8 (byte {error.start})", hint)) from None


def _mapping(node: yaml.Node | None, path: Path, problems: list[Problem]) -> Iterator[tuple[str, yaml.Node]]:
    if not isinstance(node, yaml.MappingNode):
        problems.append(Problem(str(path), "is not a mapping of keys such as channels and dependencies"))
        return
    for key, value in node.value:
        if key.value not in KEYS:
            hint = nearest(key.value, KEYS) or f"allowed: {', '.join(KEYS)}"
            problems.append(Problem(f"{path}:{line_of(key)}", f"unknown key '{shortened(key.value)}'", hint))
        yield key.value, value


def _scalar(node: yaml.Node | None) -> str | None:
    return node.value if isinstance(node, yaml.ScalarNode) else None


def _lines(node: yaml.Node | None, path: Path, key: str, problems: list[Problem]) -> Iterator[Line]:
    if node is None:
        return
    if not isinstance(node, yaml.SequenceNode):
        problems.append(Problem(f"{path}:{line_of(node)}", f"{key}: expected a list"))
        return
    for item in node.value:
        if isinstance(item, yaml.ScalarNode):
            yield Line(item.value, line_of(item))
        else:
            problems.append(Problem(f"{path}:{line_of(item)}", f"{key}: expected a word"))


def _platforms(node: yaml.Node | None, path: Path, problems: list[Problem]) -> Iterator[Line]:
    for word in _lines(node, path, "platforms", problems):
        if word.text not in PLATFORMS:
            hint = nearest(word.text, PLATFORMS) or f"allowed: {', '.join(PLATFORMS)}"
            problems.append(Problem(f"{path}:{word.line}", f"unknown platform '{shortened(word.text)}'", hint))
        yield word


def _dependencies(node: yaml.Node | None, path: Path, problems: list[Problem]) -> tuple[list[Dependency], list[Line]]:
    found: list[Dependency] = []
    pip: list[Line] = []
    items: list[Any] = node.value if isinstance(node, yaml.SequenceNode) else []
    if node is not None and not isinstance(node, yaml.SequenceNode):
        problems.append(Problem(f"{path}:{line_of(node)}", "dependencies: expected a list"))
    for item in items:
        if isinstance(item, yaml.MappingNode):
            pip += _pip_section(item, path, problems)
            continue
        try:
            found.append(parse_dependency(str(item.value), line_of(item)))
        except ValueError as error:
            problems.append(Problem(f"{path}:{line_of(item)}", str(error), "write name, name=version or name>=version"))
    return found, pip


def _pip_section(node: yaml.MappingNode, path: Path, problems: list[Problem]) -> Iterator[Line]:
    for key, value in node.value:
        if key.value != "pip":
            problems.append(
                Problem(f"{path}:{line_of(key)}", f"dependencies: unknown section '{shortened(key.value)}'")
            )
            continue
        yield from _lines(value, path, "pip", problems)


def _selectors(path: Path, text: str, problems: list[Problem]) -> None:
    for number, line in enumerate(text.splitlines(), 1):
        if match := _SELECTOR.match(line):
            hint = "make one file for each platform"
            what = f"the platform selector [{match[1]}] is read by conda-lock alone; conda and Snakemake ignore it"
            problems.append(Problem(f"{path}:{number}", what, hint))


def parse_dependency(text: str, line: int = 0) -> Dependency:
    """Return a dependency as conda reads it: ``pytorch=2.5.1=py3.10*``, ``numpy<2``, ``libblas * *mkl``, ``c::name``.

    Raises
    ------
    ValueError
        If it names no package, or is an address or uses brackets, which no lock here needs.
    """
    plain = text.split("#", 1)[0].strip()
    match = _NAME.fullmatch(plain)
    if not match or "[" in plain or plain.endswith((".conda", ".tar.bz2")):
        raise ValueError(f"'{shortened(text)}' is not a dependency that can be locked")
    channel, name, rest = match.groups()
    version, build = _version_build(rest, text)
    return Dependency(name.lower(), version, build, channel and channel.removeprefix(CHANNEL_HOST), text, line)


def _version_build(rest: str, text: str) -> tuple[str, str | None]:
    if not rest:
        return "", None
    match = _VERSION_BUILD.fullmatch(rest)
    if not match or rest.rstrip()[-1] in "=<>!~":
        raise ValueError(f"'{shortened(text)}' has no version after its operator")
    version, build = match[1].replace(" ", ""), match[2]
    if version.startswith("==") and build is None:
        return version[2:], None
    if version.startswith("=") and not any(sign in version[1:] for sign in "=,|"):
        bare = version[1:]
        return (_fuzzy(bare) if build is None else bare), build
    return (_fuzzy(version) if version.endswith("*") and version != "*" else version), build


def _fuzzy(version: str) -> str:
    """Return ``3.10`` as conda writes what begins with it: ``3.10.*``."""
    return version.rstrip("*").rstrip(".") + ".*" if version != "*" else "*"
