"""What pip is asked for, line by line: a section ``pip:``, ``pip freeze``, requirement files.

Grammar: pip's "requirements file format" and PEP 508; names and versions of archives: PEP 427 (wheels) and PEP 625.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from tracelock.envs.installed import without_login
from tracelock.envs.package import Package, pip_name, split_url
from tracelock.errors import Problem
from tracelock.safe_yaml import shortened

_VCS = re.compile(
    r"(?:(?P<name>[\w.-]+)(?:\[[^\]]*\])?\s*@\s*)?(?P<vcs>git|hg|svn|bzr)\+(?P<url>[^\s#]+)(?:#(?P<tail>\S+))?"
)
_PIP = re.compile(r"(?P<name>[A-Za-z0-9](?:[\w.-]*\w)?)(?:\[[^\]]*\])?\s*(?P<rest>.*)")
_RANGE = re.compile(r"(?:(?:===|==|~=|!=|<=|>=|<|>)[\w.+!*-]+)(?:,(?:===|==|~=|!=|<=|>=|<|>)[\w.+!*-]+)*,?")
_URL = re.compile(r"(?:https?|file)://\S+")
_REQUIREMENT_OPTION = re.compile(r"\s+--(?:hash|global-option|config-settings?)\b")
_INCLUDE = re.compile(r"(?:-r|--requirement|-c|--constraint)[\s=]*(.+)")
# An archive of a repository's branch or tag; the repository's name is the package's, as far as anybody can tell.
_REPOSITORY = re.compile(r"/([^/]+)/(?:-/)?(?:archive|zipball|tarball)/")
_SDIST = re.compile(r"(?P<name>.+?)-(?P<version>\d[^-]*(?:-?(?:post|dev|rc|a|b)\d+)?)\.(?:tar\.(?:gz|bz2|xz)|zip|tgz)")
_LIMIT_FILES = 20


@dataclass
class PipLines:
    """What was read.

    Parameters
    ----------
    packages
        With the line of each, in their order.
    options
        Lines that change what is installed without naming a package: ``--pre``, ``--extra-index-url …``.
    unread
        Files that are named and were not read.
    """

    platform: str
    python: str | None = None
    packages: list[tuple[int, Package]] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    bad: list[Problem] = field(default_factory=list)
    _files: set[Path] = field(default_factory=set)

    def take(self, path: Path, number: int, text: str) -> None:
        """Take one logical line of `path`."""
        text = re.sub(r"(^|\s)#.*$", "", text).strip()
        where = f"{path}:{number}"
        if not text:
            return
        if text.startswith("-") and not re.match(r"(-e|--editable)[\s=]", text):
            self._option(path, where, text)
            return
        text, _, marker = _split_marker(_REQUIREMENT_OPTION.split(text)[0])
        package = pip_requirement_package(text)
        if package is None:
            if text.startswith((".", "/")) or re.match(r"(-e|--editable)[\s=]", text):
                self.warnings.append(Problem(where, f"'{shortened(text)}' is a folder of its writer's machine"))
                self.unread.append(shortened(text))
            else:
                self.bad.append(Problem(where, f"'{shortened(text)}' is no requirement", "it was left out"))
        elif self._counts(where, text, marker):
            self.packages.append((number, package))

    def _option(self, path: Path, where: str, text: str) -> None:
        included = _INCLUDE.fullmatch(text)
        if included is None:
            self.options.append(re.sub(r"(https?://\S+)", lambda url: without_login(url[0]), text))
            return
        file = path.parent / included[1].strip()
        inside = file.resolve().is_relative_to(path.parent.resolve())
        if not (inside and file.is_file() and file not in self._files and len(self._files) < _LIMIT_FILES):
            self.options.append(text)
            self.unread.append(included[1].strip())
            what = f"names {shortened(included[1])}, which was not read: what it asks for is unknown"
            self.warnings.append(Problem(where, what, "expected beside this file, or below its folder"))
        elif text.startswith(("-c", "--constraint")):
            self.options.append(text)
        else:
            self._files.add(file)
            self.read(file, file.read_text(encoding="utf-8", errors="replace"))

    def read(self, path: Path, text: str) -> None:
        """Take all lines of a requirement file."""
        for number, line in logical_lines(text):
            self.take(path, number, line)

    def _counts(self, where: str, text: str, marker: str) -> bool:
        """Return whether a line is for this platform; what a marker asks of an unknown Python counts."""
        if not marker:
            return True
        holds = marker_holds(marker, self.platform, self.python)
        if holds is None:
            self.warnings.append(Problem(where, f"'{shortened(marker)}' cannot be judged", "the line was counted"))
        elif not holds:
            what = f"{shortened(text, 40)} is only for {shortened(marker)}: not for {self.platform}"
            self.warnings.append(Problem(where, what, "it was left out"))
        return holds is not False


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that pip sees, with their number: continued ones joined, comments and empty ones dropped."""
    parts: list[str] = []
    start = 0
    for number, line in enumerate(text.splitlines(), 1):
        start = start or number
        line = re.sub(r"(^|\s)#.*$", "", line)
        parts.append(line.removesuffix("\\"))
        if line.endswith("\\"):
            continue
        if joined := " ".join(parts).strip():
            yield start, joined
        parts, start = [], 0
    if joined := " ".join(parts).strip():
        yield start, joined


def _split_marker(text: str) -> tuple[str, str, str]:
    # In an address `;` needs a blank before it (PEP 508).
    separator = r"\s;" if "://" in text else r";"
    found = re.search(separator, text)
    return (text[: found.start()].strip(), ";", text[found.end() :].strip()) if found else (text.strip(), "", "")


def marker_environment(platform: str, python: str | None) -> dict[str, str]:
    """Return what markers ask about, for one of conda's platforms."""
    system, _, machine = platform.partition("-")
    names = {"linux": ("linux", "Linux"), "osx": ("darwin", "Darwin"), "win": ("win32", "Windows")}
    sys_platform, platform_system = names.get(system, (system, system))
    machines = {"64": "AMD64" if system == "win" else "x86_64", "arm64": "ARM64" if system == "win" else "arm64"}
    found = {
        "sys_platform": sys_platform,
        "platform_system": platform_system,
        "os_name": "nt" if system == "win" else "posix",
        "platform_machine": machines.get(machine, machine),
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "extra": "",
    }
    if python:
        found |= {"python_full_version": python, "python_version": ".".join(python.split(".")[:2])}
    return found


def marker_holds(marker: str, platform: str, python: str | None, extra: Mapping[str, str] | None = None) -> bool | None:
    """Return whether a marker (PEP 508) holds on a platform; ``None`` where it cannot be read or Python is unknown."""
    from packaging.markers import InvalidMarker, Marker, UndefinedEnvironmentName

    if python is None and "python_" in marker.replace("platform_python_implementation", ""):
        return None
    try:
        return Marker(marker).evaluate({**marker_environment(platform, python), **(extra or {})})
    except (InvalidMarker, UndefinedEnvironmentName, ValueError, RecursionError):
        return None


def pip_requirement_package(text: str) -> Package | None:
    """Return the package of one requirement without marker, or ``None`` for what is none.

    A repository or archive without a name takes that of its folder or file: ``git+https://host/someone/apex.git``.
    """
    text = re.sub(r"^(-e|--editable)[\s=]+", "", text).strip()
    if found := _VCS.fullmatch(text):
        return _vcs_package(found)
    if _URL.fullmatch(text):
        return _from_address(None, text)
    found = _PIP.fullmatch(text)
    if not found:
        return None
    name, rest = pip_name(found["name"]), found["rest"].replace(" ", "").strip("()")
    if rest.startswith("@"):
        return _from_address(name, rest[1:]) if _URL.fullmatch(rest[1:]) else None
    exact = re.fullmatch(r"={2,3}([\w.+!-]+)", rest)
    if rest and not exact and not _RANGE.fullmatch(rest):
        return None
    return Package(name, exact[1] if exact else None, "pip", constraint=None if exact else rest or "*")


def _from_address(name: str | None, address: str) -> Package | None:
    """Return the package of an archive's address; its version is in the file's name, or not stated at all."""
    address, _, tail = address.partition("#")
    url = without_login(address)
    found_name, version = archive_name(url)
    egg = re.search(r"egg=([\w.-]+)", tail)
    name = name or (pip_name(egg[1]) if egg else found_name)
    if name is None:
        return None
    sha = re.search(r"sha256=([0-9a-f]{64})", tail)
    sha256 = sha[1] if sha else None
    if url.startswith("file:"):
        # `pip freeze` in a conda environment names the folder in which conda built the package; it is on no machine.
        return Package(name, version, "pip", sha256=sha256)
    return Package(name, version, "pip", sha256=sha256, direct_url={"url": url, "archive_info": {}})


def archive_name(url: str) -> tuple[str | None, str | None]:
    """Return the name and the version that an archive's address tells; ``None`` for what it does not."""
    path = unquote(split_url(url).path)
    file = path.rstrip("/").rpartition("/")[2]
    if file.endswith(".whl") and file.count("-") >= 4:
        return pip_name(file.split("-")[0]), file.split("-")[1]
    if repository := _REPOSITORY.search(path):
        return pip_name(repository[1].removesuffix(".git")), None
    if sdist := _SDIST.fullmatch(file):
        return pip_name(sdist["name"]), sdist["version"]
    stem = re.sub(r"\.(tar\.\w+|zip|tgz|whl)$", "", file)
    return (pip_name(stem) if re.fullmatch(r"[A-Za-z0-9][\w.-]*", stem) and stem != file else None), None


def _vcs_package(found: re.Match[str]) -> Package:
    address, _, revision = (
        found["url"].rpartition("@") if "@" in found["url"].rpartition("/")[2] else (found["url"], "", "")
    )
    egg = re.search(r"egg=([\w.-]+)", found["tail"] or "")
    name = found["name"] or (egg[1] if egg else address.rstrip("/").rpartition("/")[2].removesuffix(".git"))
    vcs = {"vcs": found["vcs"], "commit_id": revision or None}
    return Package(pip_name(name), None, "pip", direct_url={"url": without_login(address), "vcs_info": vcs})
