"""The conda client of this machine: conda, mamba or micromamba."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracelock.envs.versions import satisfies
from tracelock.errors import EXIT_FAILED, Problem, TracelockError

# Snakemake 9 calls nothing but `conda`, from this version on.
SNAKEMAKE_NEEDS = "24.7.1"
NAMES = ("conda", "mamba", "micromamba")
HINT = "install one: tracelock conda install FOLDER, or Miniforge; then put its bin/ on PATH"


@dataclass(frozen=True)
class Client:
    """A client that answered ``--version``."""

    path: Path
    kind: str
    version: str

    @property
    def serves_snakemake(self) -> bool:
        """Return whether Snakemake can create environments with it."""
        return self.kind == "conda" and satisfies(self.version, f">={SNAKEMAKE_NEEDS}")


def find_client(wanted: str | None = None, variables: Mapping[str, str] | None = None) -> Client:
    """Return the client to use: the one named, else ``$CONDA_EXE``, else the first of conda, mamba, micromamba on PATH.

    Raises
    ------
    TracelockError
        If there is none, or the one named does not answer.
    """
    variables = os.environ if variables is None else variables
    if wanted:
        client = _asked(wanted, variables)
        if client is None:
            raise TracelockError(Problem("--client", f"'{wanted}' is no conda, mamba or micromamba that runs", HINT))
        return client
    found = next(iter(find_clients(variables)), None)
    if found is None:
        raise TracelockError(Problem("", "there is no conda, mamba or micromamba on PATH", HINT))
    return found


def find_clients(variables: Mapping[str, str] | None = None) -> list[Client]:
    """Return every client that answers, conda first, as a shell would find them."""
    variables = os.environ if variables is None else variables
    named = [variables.get("CONDA_EXE"), *NAMES, variables.get("MAMBA_EXE")]
    clients = [_asked(name, variables) for name in named if name]
    unique = {client.path: client for client in clients if client}
    return sorted(unique.values(), key=lambda client: NAMES.index(client.kind))


def _asked(name: str, variables: Mapping[str, str]) -> Client | None:
    path = shutil.which(name, path=variables.get("PATH", os.defpath))
    if path is None:
        return None
    output = output_of([path, "--version"], variables)
    version = re.search(r"\d+(?:\.\d+)+\S*", output or "")
    kind = next((kind for kind in reversed(NAMES) if Path(path).name.startswith(kind)), "conda")
    return Client(Path(path), kind, version[0]) if version else None


def output_of(command: list[str], variables: Mapping[str, str] | None = None) -> str | None:
    """Return what a program printed, or ``None`` if it failed or took longer than a minute."""
    environment = dict(os.environ if variables is None else variables)
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=60, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def client_info(client: Client) -> dict[str, Any]:
    """Return ``conda info --json``; empty where the client does not answer with an object."""
    try:
        value = json.loads(output_of([str(client.path), "info", "--json"]) or "null")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


# What conda, mamba and rattler say, what it means, and what to do; the first that fits counts.
_CAUSES: tuple[tuple[str, str, str], ...] = (
    (
        r"checksum|\b(?:md5|sha256|hash|size)\b.{0,30}mismatch|mismatch.{0,40}(?:content|hash)",
        "is not the file that was locked (its hash differs)",
        "a broken download or mirror: try again, or another mirror",
    ),
    (
        r"\bhttp\S* (?:error )?404\b|\b404 (?:not found|client)|\(404\b|no such package",
        "is not there any more",
        "name a mirror that keeps old packages in TRACELOCK_CHANNEL_MIRRORS, or relock: tracelock env lock",
    ),
    (
        r"connection failed|cannot fetch|could not resolve|name resolution|timed out|connection refused|unreachable|"
        r"error sending request|proxyerror|sslerror|\bhttp 000\b",
        "cannot be fetched: the channel does not answer",
        "check network and proxy, or name a mirror in TRACELOCK_CHANNEL_MIRRORS",
    ),
    (r"no space left", "does not fit on the disk", "free space, or choose another folder with --conda-prefix"),
)
_URL = re.compile(r"[a-z]+://[^\s'\"<>|#]+")
_ARCHIVE = re.compile(r"[^/]+\.(?:conda|tar\.bz2)$")


def failed(what: str, output: str, hint: str = "") -> TracelockError:
    """Return the error for a conda client that failed: one line with the package, the cause and the remedy.

    A failure that is not known is told by the last thing that the client said which explains anything.
    """
    for pattern, meaning, remedy in _CAUSES:
        if found := re.search(pattern, output, re.IGNORECASE):
            thing = _named_near(output, found.start()) or "a package"
            return TracelockError(Problem("", f"{what}: {thing} {meaning}", remedy), EXIT_FAILED)
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"error|cannot|could not|failed", line, re.IGNORECASE)]
    said = (telling or lines or ["it said nothing"])[-1][:300]
    return TracelockError(Problem("", f"{what}: {said}", hint), EXIT_FAILED)


def _named_near(output: str, position: int) -> str | None:
    """Return the archive, or else the address, that stands closest to a place in what a client said."""
    found = sorted(_URL.finditer(output), key=lambda match: abs(match.start() - position))
    urls = [match[0].rstrip(".,:;)") for match in found]
    archives = [archive[0] for url in urls if (archive := _ARCHIVE.search(url))]
    return next(iter([*archives, *urls]), None)
