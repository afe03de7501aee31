"""Files: atomic writes, JSON with stable bytes, and the version that every JSON of ours carries.

Standard library only, Python 3.10 syntax: the runner imports this inside pinned environments.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tracelock.errors import Problem, TracelockError


def schema(kind: str, version: int = 1) -> str:
    """Return the value of the key ``schema`` in our JSON files: ``tracelock/<kind>/<version>``."""
    return f"tracelock/{kind}/{version}"


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path` that takes its place when the block ends without an error.

    A reader sees the old file or the whole new one; a killed writer leaves nothing under the final name.
    The temporary name keeps the suffix, because some writers choose their format by it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.stem[:40]}.", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: Path, data: bytes) -> None:
    """Write `data` to `path` atomically."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` atomically, as UTF-8 with the line ends given."""
    write_bytes(path, text.encode("utf-8"))


def stable_json(value: Any) -> str:
    """Return `value` as JSON whose bytes depend on its content alone (keys sorted, no NaN)."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON document with stable bytes to `path` atomically."""
    write_text(path, stable_json(value))


def read_json(path: Path, kind: str, version: int = 1) -> dict[str, Any]:
    """Read one of our JSON documents and check that it is of `kind` and `version`.

    Raises
    ------
    TracelockError
        If the file is absent, is no JSON object, or carries another schema.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TracelockError(Problem(str(path), f"cannot be read: {error.strerror}")) from None
    except ValueError as error:
        raise TracelockError(Problem(str(path), f"is not JSON: {error}")) from None
    found = value.get("schema") if isinstance(value, dict) else None
    if found != schema(kind, version):
        raise TracelockError(Problem(str(path), f"has schema {found!r}, expected {schema(kind, version)!r}"))
    return dict(value)


def digest(value: Any) -> str:
    """Return the SHA-256 (hexadecimal) of a value's stable JSON."""
    return hashlib.sha256(stable_json(value).encode("utf-8")).hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 (hexadecimal) of a file's bytes, read in pieces."""
    sha = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            sha.update(piece)
    return sha.hexdigest()
