"""Opens an archive of a stranger: nothing outside the target folder, nothing but plain files, nothing without bound.

Everything is checked before the first file is written, sizes once more while writing: what a zip says of itself is a
claim.
"""

from __future__ import annotations

import hashlib
import stat
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from tracelock.bundle.archive import CHECKSUMS
from tracelock.errors import Problem, TracelockError
from tracelock.io import file_digest

MOST_FILES = 200_000
MOST_BYTES = 64 << 30
MOST_RATIO = 200  # of all contents to the archive; records and traces come to 5 to 20
FREE_BYTES = 64 << 20  # below this, no ratio is asked for
_LONGEST = 255
_DEEPEST = 32
_PIECE = 1 << 20
_DEVICES = {"con", "prn", "aux", "nul", *(f"{word}{digit}" for word in ("com", "lpt") for digit in range(1, 10))}
_SHOWN = 10


def unpack(archive: Path, target: Path) -> list[str]:
    """Unpack `archive` into the new folder `target`, check every file against its checksum, and return the names.

    Raises
    ------
    TracelockError
        With everything that is wrong with the archive; nothing outside `target` has been touched.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            members = [member for member in opened.infolist() if not _is_folder(member)]
            _refuse(archive, [*_problems(opened.infolist()), *_too_large(members, archive.stat().st_size)])
            target.mkdir(parents=True, exist_ok=True)
            _write(opened, members, archive, target)
    except OSError as error:
        raise TracelockError(Problem(str(archive), f"cannot be read: {error.strerror or error}")) from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise TracelockError(Problem(str(archive), f"is no sound zip archive: {error}")) from None
    names = [member.filename for member in members]
    _refuse(archive, _wrong_sums(target, names))
    return names


def _refuse(archive: Path, problems: Sequence[str]) -> None:
    if not problems:
        return
    more = [f"and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
    raise TracelockError([Problem(str(archive), text) for text in (*problems[:_SHOWN], *more)])


def _problems(members: Sequence[zipfile.ZipInfo]) -> Iterator[str]:
    seen: dict[str, str] = {}
    folders: set[str] = set()
    for member in members:
        # The name as it stands in the file: zipfile cuts it at a NUL and turns its own separators.
        if fault := name_fault(member.orig_filename.removesuffix("/")) or _kind_fault(member):
            yield f"holds {member.orig_filename!r}, {fault}"
        key = _key(member.filename)
        if key in seen:
            yield f"holds {member.filename!r} and {seen[key]!r}, one file where names do not differ by case"
        seen.setdefault(key, member.filename)
        folders |= {key.rsplit("/", depth)[0] for depth in range(1, key.count("/") + 1)}
    yield from (f"holds {seen[key]!r} as a file and as a folder" for key in sorted(folders & seen.keys()))


def _key(name: str) -> str:
    """Return what two names have in common that one file system takes for the same."""
    return unicodedata.normalize("NFC", name.rstrip("/")).casefold()


def name_fault(name: str) -> str:
    """Return what is wrong with the name of a member, or nothing."""
    parts = name.split("/")
    if name.startswith("/") or "\\" in name or ":" in name:
        return "which is no relative path"
    if any(part in ("", ".", "..") for part in parts):
        return "which leads out of its folder or nowhere"
    if any(unicodedata.category(character) in ("Cc", "Cs", "Cf", "Zl", "Zp") for character in name):
        return "whose name has characters that cannot be seen"
    if any(part[-1] in ". " or part[0] == " " or part.split(".")[0].lower() in _DEVICES for part in parts):
        return "whose name means something else on other systems"
    if len(parts) > _DEEPEST or any(len(part.encode()) > _LONGEST for part in parts):
        return "whose name is too long or too deep"
    return ""


def _is_folder(member: zipfile.ZipInfo) -> bool:
    """Return whether a member is a folder; zipfile's own test fails on an empty name."""
    return member.filename.endswith("/")


def _kind_fault(member: zipfile.ZipInfo) -> str:
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR) or ((kind == stat.S_IFDIR) != _is_folder(member) and kind):
        return "which is a link, a device or the like, no plain file"
    if member.flag_bits & 0x1:
        return "which is encrypted"
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "which is packed by another method than deflate"
    return ""


def _too_large(members: Sequence[zipfile.ZipInfo], packed: int) -> Iterator[str]:
    total = sum(member.file_size for member in members)
    if len(members) > MOST_FILES:
        yield f"holds {len(members):,} files, at most {MOST_FILES:,} are taken"
    if total > MOST_BYTES or total > max(FREE_BYTES, MOST_RATIO * packed):
        yield f"would grow from {packed:,} to {total:,} bytes, which no study does"


def _write(opened: zipfile.ZipFile, members: Sequence[zipfile.ZipInfo], archive: Path, target: Path) -> None:
    for member in members:
        path = target / member.filename
        path.parent.mkdir(parents=True, exist_ok=True)
        left = member.file_size
        with opened.open(member) as source, path.open("xb") as plain:
            while piece := source.read(_PIECE):
                left -= len(piece)
                if left < 0:
                    _refuse(archive, [f"holds {member.filename!r}, which is larger than the archive says"])
                plain.write(piece)


def _wrong_sums(folder: Path, names: Sequence[str]) -> list[str]:
    """Return which files are not as the archive's checksums say, are missing, or are not in them."""
    path = folder / CHECKSUMS
    if not path.is_file():
        return [f"holds no {CHECKSUMS}, so it is no archive of tracelock bundle"]
    wanted: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
        sha256, gap, name = line.partition("  ")
        if len(sha256) != hashlib.sha256().digest_size * 2 or not gap:
            return [f"{CHECKSUMS}: line {number} is no SHA-256 and name"]
        wanted[name] = sha256
    there = set(names) - {CHECKSUMS}
    return [
        *(f"lacks {name}, which its checksums name" for name in sorted(wanted.keys() - there)),
        *(f"holds {name}, which its checksums do not name" for name in sorted(there - wanted.keys())),
        *(
            f"holds {name}, which has been changed since it was packed"
            for name in sorted(there & wanted.keys())
            if file_digest(folder / name) != wanted[name].lower()
        ),
    ]
