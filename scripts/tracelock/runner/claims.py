"""Locks that end with the one process that took them, whatever it has started and however it ends.

POSIX record locks (fcntl): the kernel ties them to a process, so no child inherits one, and a worker that outlives a
killed run holds nothing. They also work between the nodes of a cluster on NFS. In return, closing any descriptor of a
file drops all locks of the process on it: here each file is opened once and stays open.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

_BUSY = (errno.EACCES, errno.EAGAIN)
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)
# struct flock of Linux: type, whence, start, length, pid.
_FLOCK = "hhqqi4x"

_files: dict[str, int] = {}
_held: list[Claim] = []


@dataclass(frozen=True)
class Claim:
    """A byte of a lock file that is ours; `shared` ones may be held by several processes at once."""

    path: str
    byte: int
    shared: bool

    def release(self) -> None:
        """Give it back; more than once is the same as once."""
        if self in _held:
            _held.remove(self)
            if self not in _held:
                fcntl.lockf(_files[self.path], fcntl.LOCK_UN, 1, self.byte)


def claim(path: Path, byte: int = 0, shared: bool = False) -> Claim | None:
    """Return a claim of one byte of the file `path`, which is made where it is absent; None where another holds it.

    Raises
    ------
    OSError
        If the file cannot be opened, or its file system has no locks.
    """
    wanted = Claim(str(path), byte, shared)
    # The kernel grants a process what it holds already.
    if any(ours.path == wanted.path and ours.byte == byte and not (ours.shared and shared) for ours in _held):
        return None
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.lockf(_file(wanted.path), kind | fcntl.LOCK_NB, 1, byte)
    except OSError as error:
        if error.errno in _BUSY:
            return None
        raise
    _held.append(wanted)
    return wanted


def holder_pid(path: Path, byte: int = 0) -> int | None:
    """Return the pid of a process that holds the byte, None where none does, or the kernel does not tell."""
    if sys.platform != "linux":
        return None
    asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
    with contextlib.suppress(OSError):
        kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(_file(str(path)), fcntl.F_GETLK, asked))
        return int(pid) if kind != fcntl.F_UNLCK and pid > 0 else None
    return None


def write_note(ours: Claim, text: str) -> None:
    """Write who holds a claim into its file, for others to read; a full disk is lived with."""
    data, descriptor = text.encode(), _files[ours.path]
    with contextlib.suppress(OSError):
        os.pwrite(descriptor, data, 0)
        os.ftruncate(descriptor, len(data))


def has_no_locks(error: OSError) -> bool:
    """Return whether `error` says that the file system knows no locks (some parallel ones do not)."""
    return error.errno in _NO_LOCKS


def _file(path: str) -> int:
    """Return the descriptor of a lock file, opened once in this process. Links are not followed."""
    descriptor = _files.get(path)
    if descriptor is not None and not _is(descriptor, path):
        del _files[path]  # another file has this name now; the old one stays open with what is held of it
        descriptor = None
    if descriptor is None:
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(path, flags)
        except FileNotFoundError:
            # In a folder for all, Linux refuses to create over somebody else's file: hence not at once.
            descriptor = os.open(path, flags | os.O_CREAT, 0o666)
            with contextlib.suppress(PermissionError):
                Path(path).chmod(0o666)  # whatever this user's umask
        _files[path] = descriptor
    return descriptor


def _is(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), Path(path).stat())
    except OSError:
        return False


def _forget() -> None:
    """A new process holds nothing of its parent's."""
    _held.clear()
    for descriptor in _files.values():
        os.close(descriptor)
    _files.clear()


os.register_at_fork(after_in_child=_forget)
