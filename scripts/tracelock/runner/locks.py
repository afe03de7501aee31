"""Exclusive locks between processes by flock; the system drops them when the last holder ends, however it ends."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


def open_lock(path: Path) -> int:
    """Return a descriptor of the lock file `path`, which is made where it is absent.

    Children inherit it, so that a lock lasts as long as any process of the tree. Links are not followed, since
    the folder may be one that everybody writes to. In such a folder Linux refuses to create over somebody
    else's file, so an existing file is opened without creating it.
    """
    flags = os.O_RDWR | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        descriptor = os.open(path, flags | os.O_CREAT, 0o666)
        _open_to_all(path)
    os.set_inheritable(descriptor, True)
    return descriptor


def _open_to_all(path: Path) -> None:
    """Let other users of the machine take the lock, too, whatever this user's umask."""
    with contextlib.suppress(PermissionError):
        path.chmod(0o666)


def try_lock(descriptor: int) -> bool:
    """Take the lock if it is free; return whether it is ours.

    Raises
    ------
    OSError
        If the file system has no locks.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def has_no_locks(error: OSError) -> bool:
    """Return whether `error` says that the file system knows no locks (some parallel ones do not)."""
    return error.errno in _NO_LOCKS


def wait_for(attempt: Callable[[], bool], tell: Callable[[float], None], pause_s: float = 0.1) -> None:
    """Repeat `attempt` until it is true; `tell` hears after 2 s, and each minute, for how many seconds we wait."""
    started = time.monotonic()
    due = 2.0
    while not attempt():
        waited = time.monotonic() - started
        if waited >= due:
            tell(waited)
            due = waited + 60
        time.sleep(pause_s)
