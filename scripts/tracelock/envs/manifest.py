"""Any description of an environment as a list of packages: prefix, lock, pin file, snapshot, exported list."""

from __future__ import annotations

import codecs
import platform as machine
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

from tracelock.envs.installed import read_installed
from tracelock.envs.package import Package, conda_name, split_url
from tracelock.errors import Problem, TracelockError
from tracelock.io import read_json

Source = Literal["prefix", "lock", "pin", "snapshot", "yaml", "requirements", "uv", "pixi"]

_EXPECTED = (
    "a prefix, a snapshot, a conda-lock or pin file, an environment.yml, uv.lock, pixi.lock or a requirement file"
)
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
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
    options, unread
        Of pip: what changes the packages that are installed without naming one; what is named and was not read.
    """

    source: Source
    label: str
    packages: tuple[Package, ...]
    python: str | None = None
    warnings: tuple[Problem, ...] = ()
    options: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def read_manifest(path: Path, platform: str | None = None) -> Manifest:
    """Read any description of an environment.

    Parameters
    ----------
    path
        A conda prefix, a venv, a snapshot's folder or its packages.json, a conda-lock file, a pin file, an
        environment.yml, a uv.lock, a pixi.lock (``pixi.lock@cuda`` for one of its environments), or a requirement
        file, such as ``pip freeze`` writes.
    platform
        Of a lock for several platforms, and of environment markers; this machine's if ``None``.

    Raises
    ------
    TracelockError
        If it is none of these, or damaged.
    """
    if path.is_dir():
        return _read_folder(path)
    environment = None
    if "@" in path.name and not path.exists():
        name, _, environment = path.name.rpartition("@")
        path = path.with_name(name)
    text, warnings = _text_of(path)
    wanted = platform or this_platform()
    if is_pin(text):
        return read_pin(path, text)
    if path.suffix == ".json":
        return read_snapshot(path)
    if _is(text, r"^package:", r"^metadata:"):
        return read_conda_lock(path, platform)
    return _read_text(path, text, wanted, environment, warnings)


def _read_text(path: Path, text: str, platform: str, environment: str | None, warnings: list[Problem]) -> Manifest:
    """Read what is told by its content, not by its name: people rename files."""
    found: Manifest
    if _is(text, r"^environments:", r"^packages:", r"^version: "):
        found = _reader("pixi").read_pixi(path, text, platform, environment)
    elif _is(text, r"^version = ", r"^\[\[package\]\]"):
        found = _reader("uv").read_uv(path, text, platform)
    elif _is(text, r"^dependencies:"):
        found = _read_yaml(path, text, platform, warnings)
    else:
        found = _read_pip(path, text, platform, warnings)
    return found


def _is(text: str, *patterns: str) -> bool:
    return all(re.search(pattern, text, re.MULTILINE) for pattern in patterns)


def _text_of(path: Path) -> tuple[str, list[Problem]]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TracelockError(Problem(str(path), f"cannot be read: {error.strerror}")) from None
    return decode(path, data)


def _read_yaml(path: Path, text: str, platform: str, warnings: list[Problem]) -> Manifest:
    found = _reader("exported").read_exported(path, text, platform)
    more = {"options": found.options, "unread": found.unread}
    return Manifest("yaml", str(path), found.packages, warnings=(*warnings, *found.warnings), **more)


def _read_pip(path: Path, text: str, platform: str, warnings: list[Problem]) -> Manifest:
    """Read a requirement file; a file of which no line can be one is no environment."""
    lines = _reader("pip_lines").PipLines(platform)
    lines.read(path, text)
    stated = path.suffix in (".txt", ".in", ".lock") or re.search(r"^[\w.-]+(\[.*\])?\s*(==|@)", text, re.MULTILINE)
    if not lines.packages or lines.bad or not stated:
        more = [str(problem) for problem in lines.bad[:1]] if lines.packages and stated else []
        what = "describes no environment that is known"
        raise TracelockError(Problem(str(path), what, "; ".join([*more, f"expected {_EXPECTED}"])))
    packages = {package.name: package for _, package in lines.packages}
    return Manifest(
        "requirements",
        str(path),
        tuple(packages.values()),
        warnings=(*warnings, *lines.warnings),
        options=tuple(dict.fromkeys(lines.options)),
        unread=tuple(dict.fromkeys(lines.unread)),
    )


def _read_folder(path: Path) -> Manifest:
    if (path / "packages.json").is_file():
        return read_snapshot(path / "packages.json")
    installed = read_installed(path)
    python = installed.python if installed.kind == "venv" else None
    return Manifest("prefix", str(path), installed.packages, python, installed.damaged)


def read_snapshot(path: Path) -> Manifest:
    """Read a snapshot's ``packages.json``."""
    kind, python, packages = snapshot_content(path)
    return Manifest("snapshot", str(path.parent), packages, python if kind == "venv" else None)


def snapshot_content(path: Path) -> tuple[str, str | None, tuple[Package, ...]]:
    """Return kind (conda, venv), version of Python and packages of a snapshot's ``packages.json``.

    Raises
    ------
    TracelockError
        If it is damaged: all that is wrong with it at once.
    """
    document = read_json(path, "packages")
    kind, python, entries = (document.get(key) for key in ("kind", "python", "packages"))
    problems = []
    if kind not in ("conda", "venv"):
        problems.append(Problem(str(path), "kind: expected conda or venv"))
    if python is not None and not isinstance(python, str):
        problems.append(Problem(str(path), "python: expected a version"))
    if not isinstance(entries, list):
        raise TracelockError([*problems, Problem(str(path), "packages: expected a list")])
    packages = []
    for number, entry in enumerate(entries):
        try:
            packages.append(Package.from_json(entry if isinstance(entry, dict) else {}))
        except ValueError as error:
            problems.append(Problem(f"{path}: packages[{number}]", str(error)))
    if problems:
        raise TracelockError(problems)
    return str(kind), python, tuple(packages)


def read_conda_lock(path: Path, platform: str | None) -> Manifest:
    """Read a conda-lock file for one platform: the one given, this machine's, or the only one there is."""
    lock = _reader("lock").read_lock(path)
    platforms = lock.metadata.platforms
    wanted = platform or (platforms[0] if len(platforms) == 1 else this_platform())
    return Manifest("lock", str(path), tuple(package.to_package() for package in lock.for_platform(wanted)))


def _reader(module: str) -> Any:
    """Return the module that reads a YAML file; the environments that are checked need not have its libraries."""
    try:
        return import_module(f"tracelock.envs.{module}")
    except ImportError as error:
        hint = "give the pin file, or run it with the Python of tracelock"
        raise TracelockError(Problem("", f"this file needs {error.name}, which is not installed here", hint)) from None


def this_platform() -> str:
    """Return conda's name for this machine's platform."""
    system = {"Linux": "linux", "Darwin": "osx", "Windows": "win"}.get(machine.system(), machine.system().lower())
    names = {"x86_64": "64", "AMD64": "64", "aarch64": "aarch64" if system == "linux" else "arm64"}
    return f"{system}-{names.get(machine.machine(), machine.machine())}"


def decode(path: Path, data: bytes) -> tuple[str, list[Problem]]:
    """Return a file's text whatever editor or shell wrote it: UTF-8, UTF-16 with or without its mark, Latin-1.

    PowerShell's ``conda env export > environment.yml`` writes UTF-16, which conda itself cannot read.
    """
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return _decoded(path, data[len(mark) :], encoding)
    # Without a mark, every other byte of UTF-16 is zero in such a file.
    if data[1:2] == b"\0" or data[:1] == b"\0":
        return _decoded(path, data, "utf-16-le" if data[1:2] == b"\0" else "utf-16-be")
    return _decoded(path, data, "utf-8")


def _decoded(path: Path, data: bytes, encoding: str) -> tuple[str, list[Problem]]:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        what = f"is not {encoding.upper()}; read as Latin-1"
        return data.decode("latin-1"), [Problem(str(path), what, "save it as UTF-8")]
    warning = Problem(str(path), f"is {encoding.upper()}, which conda cannot read", "save it as UTF-8")
    return text, [] if encoding == "utf-8" else [warning]


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
    base, _, name = unquote(split_url(url).path).rpartition("/")
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
