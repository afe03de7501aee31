"""An archive whose bytes depend on its content alone: names in order, one date, one set of permissions.

Deflate of the same zlib gives the same bytes; another one may pack differently, so checksums are of the contents.
"""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

from tracelock.io import atomic_path, file_digest

CHECKSUMS = "checksums.sha256"
_DATE = (1980, 1, 1, 0, 0, 0)
_PACKED = (".gz", ".png", ".zip", ".zst")
_PIECE = 1 << 20


def write_archive(folder: Path, output: Path) -> None:
    """Write everything below `folder` as one zip."""
    with atomic_path(output) as temporary, zipfile.ZipFile(temporary, "w", allowZip64=True) as archive:
        for path in _files(folder):
            name = path.relative_to(folder).as_posix()
            entry = zipfile.ZipInfo(name, _DATE)
            entry.create_system = 3
            entry.external_attr = 0o100644 << 16
            entry.compress_type = zipfile.ZIP_STORED if name.endswith(_PACKED) else zipfile.ZIP_DEFLATED
            entry.file_size = path.stat().st_size
            with path.open("rb") as source, archive.open(entry, "w") as target:
                while piece := source.read(_PIECE):
                    target.write(piece)


def write_checksums(folder: Path) -> None:
    """Write the SHA-256 of every file below `folder`, in the form that ``sha256sum --check`` reads."""
    files = [path for path in _files(folder) if path.name != CHECKSUMS or path.parent != folder]
    lines = [f"{file_digest(path)}  {path.relative_to(folder).as_posix()}\n" for path in files]
    (folder / CHECKSUMS).write_text("".join(lines), encoding="utf-8")


def gzip_bytes(data: bytes) -> bytes:
    """Return `data` as gzip without name and time."""
    return gzip.compress(data, compresslevel=6, mtime=0)


def _files(folder: Path) -> list[Path]:
    return sorted((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.as_posix())
