"""A copy of the project whose environments come from the tests' own channel, with real locks and pins of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import yaml
from conda_channel import SUBDIR, write_repodata

from tracelock.envs.catalog import find_environment
from tracelock.envs.content_hash import content_hash
from tracelock.envs.render import render
from tracelock.envs.spec import read_spec

ROOT = Path(__file__).resolve().parents[2]
STANDIN = Path(__file__).with_name("conda_standin.py")
COPIED = ("Snakefile", "workflow", "scripts", "requirements")
ACTIVATE = """\
export CONDA_PREFIX="$1" CONDA_DEFAULT_ENV="$1" PATH="$1/bin:$PATH"
"""


@dataclass
class Channel:
    """A channel on disk and where it is served.

    Parameters
    ----------
    records
        What ``repodata.json`` holds, by file name.
    """

    folder: Path
    records: dict[str, dict[str, Any]]
    url: str = ""

    def closure(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Return the records of `names` (``name`` or ``name=version``) and of all that they need, by file name."""
        waiting = [name.partition("=") for name in names]
        found: dict[str, dict[str, Any]] = {}
        while waiting:
            name, _, version = waiting.pop()
            matches = [f for f, r in self.records.items() if r["name"] == name and version in ("", r["version"])]
            file = matches[-1]
            if file not in found:
                found[file] = self.records[file]
                waiting += [(depend.split()[0], "", "") for depend in self.records[file]["depends"]]
        return dict(sorted(found.items()))

    def without(self, file: str, folder: Path) -> Channel:
        """Return a channel like this one that lacks a package; archives are hard links."""
        records = {name: record for name, record in self.records.items() if name != file}
        (folder / SUBDIR).mkdir(parents=True)
        (folder / "noarch").mkdir()
        for name in records:
            os.link(self.folder / SUBDIR / name, folder / SUBDIR / name)
        write_repodata(folder, records)
        return Channel(folder, records)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def serve(channel: Channel) -> Iterator[Channel]:
    """Serve a channel on loopback while the caller uses it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(channel.folder)))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Channel(channel.folder, channel.records, f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def install_standin(folder: Path) -> Path:
    """Make a folder look like a conda installation; Snakemake cannot have blanks in its path."""
    program = folder / "bin" / "conda"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nSTANDIN_ROOT="{folder}" exec "{sys.executable}" "{STANDIN}" "$@"\n')
    program.chmod(0o755)
    (folder / "bin" / "activate").write_text(ACTIVATE)
    return folder


@dataclass
class Project:
    """A copy of the project in a folder of its own.

    Parameters
    ----------
    conda_prefix
        Where Snakemake builds environments; projects may share it.
    variables
        Of the shell, on top of its own.
    canonical
        The channel as locks name it, where that is not where it is served.
    """

    folder: Path
    channel: Channel
    standin: Path
    conda_prefix: Path
    variables: dict[str, str] = field(default_factory=dict)
    canonical: str = ""

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
        for name in COPIED:
            source = ROOT / name
            copy = partial(shutil.copytree, ignore=ignore) if source.is_dir() else shutil.copy
            copy(source, self.folder / name)
        (self.folder / "envs").mkdir()

    @property
    def named(self) -> str:
        """Return the channel as locks name it."""
        return self.canonical or self.channel.url

    def add_environment(self, name: str, asked: Iterable[str], faults: Mapping[str, Any] | None = None) -> None:
        """Write yaml, lock and pin of an environment.

        Parameters
        ----------
        faults
            For the lock: file name → fields that it has otherwise than the channel.
        """
        asked = list(asked)
        spec = self.folder / "envs" / f"{name}.yaml"
        document = {"name": name, "channels": [self.named, "nodefaults"], "platforms": [SUBDIR]}
        loose = [word.partition("=")[0] for word in asked]
        spec.write_text(yaml.safe_dump({**document, "dependencies": loose}, sort_keys=False))
        lock = spec.with_name(f"{name}.conda-lock.yml")
        lock.write_text(yaml.safe_dump(self._lock(spec, asked, faults or {}), sort_keys=False))
        render(find_environment(self.folder, name), SUBDIR)

    def _lock(self, spec: Path, asked: list[str], faults: Mapping[str, Any]) -> dict[str, Any]:
        packages = [
            self._entry(file, record | faults.get(record["name"], {}))
            for file, record in self.channel.closure(asked).items()
        ]
        metadata = {
            "content_hash": {SUBDIR: content_hash(read_spec(spec), SUBDIR)},
            "channels": [{"url": self.named, "used_env_vars": []}],
            "platforms": [SUBDIR],
            "sources": [f"envs/{spec.name}"],
        }
        return {"version": 1, "metadata": metadata, "package": packages}

    def _entry(self, file: str, record: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "name": record["name"],
            "version": record["version"],
            "manager": "conda",
            "platform": SUBDIR,
            "dependencies": {d.split()[0]: " ".join(d.split()[1:]) for d in record["depends"]},
            "url": f"{self.named}/{SUBDIR}/{file}",
            "hash": {"md5": record["md5"], "sha256": record["sha256"]},
            "category": "main",
            "optional": False,
        }

    def lock(self, name: str) -> Path:
        """Return an environment's lock."""
        return self.folder / "envs" / f"{name}.conda-lock.yml"

    def environment(self) -> dict[str, str]:
        """Return the variables of a shell in which this conda, and no other, is found."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("CONDA", "MAMBA", "PYTHON"))}
        path = f"{self.standin / 'bin'}{os.pathsep}{kept['PATH']}"
        caches = {"XDG_CACHE_HOME": str(self.standin / "cache"), "RATTLER_CACHE_DIR": str(self.standin / "cache")}
        return {**kept, **caches, "PATH": path, "NO_COLOR": "1", "HOME": str(self.standin), **self.variables}

    def command(self, *options: str, study: str = "study.yaml") -> list[str]:
        """Return the call of Snakemake that a person would type."""
        return [
            *(sys.executable, "-m", "snakemake", "--snakefile", "Snakefile", "--use-conda"),
            *("--workflow-profile", "workflow/profiles/default", "--conda-prefix", str(self.conda_prefix)),
            *options,
            *("--config", f"study={study}"),
        ]

    def snakemake(self, *options: str, study: str = "study.yaml") -> subprocess.CompletedProcess[str]:
        """Run Snakemake with conda in the project's folder."""
        return self.run(*self.command(*options, study=study))

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program in the project's folder."""
        return subprocess.run(
            command, cwd=self.folder, env=self.environment(), capture_output=True, text=True, check=False, timeout=300
        )

    def tracelock(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the project's command line."""
        code = "import sys; sys.path.insert(0, 'scripts'); from tracelock.cli import main; main()"
        return self.run(sys.executable, "-c", code, *words)

    def read(self, path: str) -> dict[str, Any]:
        """Return a JSON file below the project."""
        value: dict[str, Any] = json.loads((self.folder / path).read_text(encoding="utf-8"))
        return value
