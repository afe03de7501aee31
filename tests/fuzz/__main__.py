"""Fuzz the readers of foreign files with atheris: python -m tests.fuzz TARGET [CORPUS] [options of libFuzzer].

A reader may refuse what it is given, with a TracelockError; every other exception, a hang of more than 30 seconds and
more than 2 GB of memory are findings. What raised them is kept beside the corpus.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["tracelock"]):
    from tracelock.analysis import analyze
    from tracelock.bundle.unpack import unpack
    from tracelock.envs.manifest import read_manifest
    from tracelock.errors import TracelockError
    from tracelock.study.load import load_plan
    from tracelock.trace import read_trace


def trace(data: bytes, folder: Path) -> None:
    """Read a trace and compute all its figures."""
    path = folder / "trace.json"
    path.write_bytes(data)
    analyze(read_trace(path))


def study(data: bytes, folder: Path) -> None:
    """Plan a study."""
    path = folder / "study.yaml"
    path.write_bytes(data)
    load_plan(path)


def environment(data: bytes, folder: Path) -> None:
    """Read a list of packages; its first byte chooses the kind."""
    names = ("environment.yml", "requirements.txt", "x.linux-64.pin.txt", "conda-lock.yml", "packages.json", "uv.lock")
    path = folder / (names[data[0] % len(names)] if data else names[0])
    path.write_bytes(data[1:])
    read_manifest(path)


def bundle(data: bytes, folder: Path) -> None:
    """Unpack an archive; nothing may be written beside its folder."""
    path = folder / "a.zip"
    path.write_bytes(data)
    try:
        unpack(path, folder / "inside")
    finally:
        assert {entry.name for entry in folder.iterdir()} <= {"a.zip", "inside"}


TARGETS: dict[str, Callable[[bytes, Path], None]] = {
    "trace": trace,
    "study": study,
    "environment": environment,
    "bundle": bundle,
}


def main() -> None:
    """Fuzz one target."""
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(f"expected a target: {', '.join(TARGETS)}")
    target = TARGETS[sys.argv.pop(1)]

    def once(data: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            try:
                target(data, Path(folder))
            except TracelockError:
                return

    atheris.Setup(sys.argv, once)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
