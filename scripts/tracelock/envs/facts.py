"""What `tracelock doctor` asks a machine and a project."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracelock.envs.catalog import PLATFORM, environments
from tracelock.envs.checks import check_all
from tracelock.envs.clients import Client, client_info, find_clients
from tracelock.envs.known import asked_device
from tracelock.envs.lock import read_lock
from tracelock.envs.machine import machine_facts
from tracelock.envs.spec import read_spec
from tracelock.errors import Problem, TracelockError


@dataclass(frozen=True)
class Facts:
    """What is known of a machine and a project.

    Parameters
    ----------
    machine
        As `machine_facts` returns it.
    channels
        The channels of conda's own settings.
    free_bytes
        On the disk of the environments; ``None`` if unknown.
    user_site
        Packages below ``~/.local``, by Python version.
    glibc_needed
        Version ranges that locked packages ask for.
    cuda, cpu
        Numbers of environments with and without CUDA.
    problems
        What `env check` says.
    root
        The project whose environments were looked at; ``None`` if none was found.
    searched
        The folders that were looked in for one.
    """

    machine: Mapping[str, Any]
    clients: tuple[Client, ...] = ()
    channels: tuple[str, ...] = ()
    prefix: Path = Path()
    free_bytes: int | None = None
    file_locks: bool = True
    user_site: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    glibc_needed: tuple[str, ...] = ()
    cuda: int = 0
    cpu: int = 0
    problems: tuple[Problem, ...] = ()
    root: Path | None = None
    searched: tuple[Path, ...] = ()


# The checkout that this package lies in; studies take their environments from there, wherever they are started.
_OWN = Path(__file__).resolve().parents[3]


def gather(asked: Path | None, prefix: Path, variables: Mapping[str, str] | None = None) -> Facts:
    """Return the facts of this machine for a project with its environments in `prefix`.

    Parameters
    ----------
    asked
        The project; if ``None`` the working folder, or else the checkout that tracelock runs from.
    """
    variables = dict(os.environ if variables is None else variables)
    clients = tuple(find_clients(variables))
    searched = (asked,) if asked is not None else (Path.cwd(), _OWN)
    root = next((folder for folder in searched if environments(folder)), None)
    known = environments(root) if root else {}
    devices = [_device(environment.spec) for environment in known.values()]
    place = _nearest_folder(prefix)
    return Facts(
        machine=machine_facts(),
        clients=clients,
        channels=tuple(map(str, client_info(clients[0]).get("channels") or ())) if clients else (),
        prefix=prefix,
        free_bytes=shutil.disk_usage(place).free,
        file_locks=_has_file_locks(place),
        user_site=_user_site(Path(variables.get("HOME", str(Path.home())))),
        variables=variables,
        glibc_needed=tuple(sorted(_glibc_needed(root))) if root else (),
        cuda=devices.count("cuda"),
        cpu=len(devices) - devices.count("cuda"),
        problems=tuple(check_all(root)) if root else (),
        root=root,
        searched=searched,
    )


def _device(spec: Path) -> str | None:
    try:
        return asked_device(read_spec(spec))
    except TracelockError:
        return None  # reported among the problems


def _nearest_folder(path: Path) -> Path:
    path = path.absolute()
    return next(folder for folder in (path, *path.parents) if folder.is_dir())


def _has_file_locks(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder) as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except PermissionError:
        return True  # nothing is known, and a folder that cannot be written is another matter
    except OSError:
        return False
    return True


def _user_site(home: Path) -> dict[str, tuple[str, ...]]:
    found = {
        folder.parent.name.removeprefix("python"): tuple(
            sorted(info.name.split("-")[0] for info in folder.glob("*.dist-info"))
        )
        for folder in home.glob(".local/lib/python3*/site-packages")
    }
    return {version: names for version, names in sorted(found.items()) if names}


def _glibc_needed(root: Path) -> set[str]:
    needed: set[str] = set()
    for environment in environments(root).values():
        try:
            packages = read_lock(environment.lock).for_platform(PLATFORM)
        except TracelockError:
            continue  # reported among the problems
        needed |= {package.dependencies["__glibc"] for package in packages if "__glibc" in package.dependencies}
    return needed
