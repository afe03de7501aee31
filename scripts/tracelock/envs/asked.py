"""What was asked of conda when a prefix was made: its history, the requested specs, the channel priority.

Standard library only, Python 3.10 syntax.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tracelock.envs.installed import Installed

_HEAD = re.compile(r"==> (\S+ \S+) <==")
_SUBDIR = r"(?:noarch|(?:linux|osx|win)-\w+)"
_SPECS = re.compile(r"# (update|remove|neutered|install) specs: (.*)")


def asked_for(installed: Installed) -> dict[str, Any]:
    """Return what was asked for: ``history`` (date, command, specs of each call) and ``specs`` by package name."""
    specs = {record["name"]: _requested(record) for record in installed.records.values()}
    return {
        "history": list(read_history(installed.prefix)),
        "specs": {name: spec for name, spec in sorted(specs.items()) if spec},
    }


def _requested(record: Mapping[str, Any]) -> str | None:
    found = record.get("requested_spec") or ", ".join(map(str, record.get("requested_specs") or ()))
    # A client that installs a list of files records the file itself, which was asked for by nobody.
    return without_address(str(found)) if found and str(found) != "None" else None


def without_address(text: str) -> str:
    """Return what was asked for without the address of a mirror; a channel of anaconda.org keeps its name.

    From an explicit list conda asks for ``http://host/linux-64::python==3.11.7=0_cpython``, older clients for the
    archive's address. Where a package came from stands in its own entry and in the lock.
    """
    text = re.sub(rf"https?://conda\.anaconda\.org/([\w.-]+)(?:/{_SUBDIR})?::", r"\1::", text)
    text = re.sub(r"[a-z]+://[^\s,'\"]*?::", "", text)
    return re.sub(r"[a-z]+://[^\s,'\"]*?([^\s,'\"/]*)(?=[\s,'\"]|$)", r"\1", text)


def read_history(prefix: Path) -> Iterator[dict[str, Any]]:
    """Yield the entries of ``conda-meta/history``, without the paths of whoever wrote it."""
    try:
        text = (prefix / "conda-meta" / "history").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    entry: dict[str, Any] = {}
    for line in text.splitlines():
        if head := _HEAD.match(line):
            if entry:
                yield entry
            entry = {"date": head.group(1)}
        elif line.startswith("# cmd:"):
            entry["command"] = without_paths(line[6:].strip(), prefix)
        elif line.startswith("# conda version:"):
            entry["conda_version"] = line[16:].strip()
        elif specs := _SPECS.match(line):
            entry[f"{specs.group(1)}_specs"] = _spec_list(specs.group(2))
    if entry:
        yield entry


def _spec_list(text: str) -> list[str]:
    """Return the specs of a history line; conda wrote a Python list, and before 4.4 a list with commas."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return [without_address(spec.strip()) for spec in text.split(",") if spec.strip()]
    return [without_address(str(spec)) for spec in value] if isinstance(value, (list, tuple)) else [str(value)]


def without_paths(text: str, prefix: Path) -> str:
    """Return a command with the prefix, a mirror's address and the folders before a file's name taken out."""
    text = text.replace(str(prefix), "PREFIX").replace(str(prefix.resolve()), "PREFIX")
    text = re.sub(r"(--prefix|-p)([ =])(?:'[^']*'|\"[^\"]*\"|\S+)", r"\1\2PREFIX", text)
    text = re.sub(r"[a-z]+://(?!conda\.anaconda\.org/)[^\s'\"]*?([^\s'\"/]*)/?(?=[\s'\"]|$)", r"\1", text)
    return re.sub(r"(?<![\w:/.])(?:/[^\s/'\"]+)*/([^\s/'\"]+)", r"\1", text)


def channel_priority(prefix: Path, unknown: dict[str, str]) -> str | None:
    """Return conda's setting in force for `prefix` (strict, flexible, disabled), or ``None`` where none is written.

    Read from ``CONDA_CHANNEL_PRIORITY`` and the ``.condarc`` files in the order of conda's documentation.
    """
    setting = os.environ.get("CONDA_CHANNEL_PRIORITY")
    for path in _condarcs(prefix):
        try:
            found = re.search(r"^channel_priority:\s*['\"]?(\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        except (OSError, UnicodeDecodeError):
            continue
        setting = setting or (found.group(1) if found else None)
    if setting is None:
        unknown["channel_priority"] = "neither a .condarc nor CONDA_CHANNEL_PRIORITY sets it; conda's default: flexible"
    # Before 4.6 it was a truth value.
    return {"true": "flexible", "false": "disabled"}.get(str(setting).lower(), setting)


def _condarcs(prefix: Path) -> Iterator[Path]:
    """Yield the files of settings, the one that counts most first."""
    for name in ("CONDARC", "MAMBARC"):
        if name in os.environ:
            yield Path(os.environ[name])
    yield prefix / ".condarc"
    yield Path.home() / ".condarc"
    yield Path.home() / ".conda" / ".condarc"
    if "CONDA_EXE" in os.environ:
        yield Path(os.environ["CONDA_EXE"]).parent.parent / ".condarc"
    yield from (Path("/etc/conda/.condarc"), Path("/var/lib/conda/.condarc"))
