"""One attempt at a run: it works in a folder of its own, and only the newest attempt may publish.

A batch system can start a run again while its first attempt still lives, on this machine or another. Each attempt
enters its token in the run's folder; whoever's token stands there in the end publishes, by renames, run.json last.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from tracelock.errors import EXIT_FAILED, Problem, TracelockError
from tracelock.runner.locks import has_no_locks, open_lock, try_lock

RECORD = "run.json"
LOG = "log.txt"
_PUBLISHED = ("failure.json", "samples.csv", LOG, "trace*.json.gz", "*.pt.trace.json.gz")
_CLAIM = ".attempt"
_PREFIX = ".attempt-"
_ALIVE = "alive"


class Attempt:
    """The right to publish one run, as long as no newer attempt takes it.

    Parameters
    ----------
    folder
        Where the run's files are published. Those of an older attempt are taken away: from here on, the folder
        holds the result of this attempt or none.
    token
        Names this attempt in run.json; by default a random one.

    Raises
    ------
    TracelockError
        If the token is not fit for the name of a folder.
    """

    def __init__(self, folder: Path, token: str | None = None) -> None:
        self.folder = folder
        self.token = token or uuid.uuid4().hex
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,80}", self.token):
            raise TracelockError(Problem("token", f"is {self.token!r}, expected up to 80 of A-Z a-z 0-9 . _ -"))
        # A batch system may give its job's number twice, so a token alone does not tell two attempts apart.
        self.work = folder / f"{_PREFIX}{self.token}-{uuid.uuid4().hex[:8]}"
        folder.mkdir(parents=True, exist_ok=True)
        with self._claim() as claim:
            self.work.mkdir()
            # Held by this process tree to its end, so that another attempt can tell a dead one's folder.
            self._alive = _hold(self.work / _ALIVE)
            os.ftruncate(claim, 0)
            os.pwrite(claim, self.work.name.encode(), 0)
            self._remove_former()
            self._remove_dead()

    def publish(self, names: Sequence[str]) -> None:
        """Move the named files from the work folder to their final names, run.json last.

        Raises
        ------
        TracelockError
            If a newer attempt has taken over.
        """
        with self._claim() as claim:
            if os.pread(claim, 1000, 0) != self.work.name.encode():
                what = "a newer attempt at this run has taken over; nothing of this one is kept"
                raise TracelockError(Problem(str(self.folder), what), EXIT_FAILED)
            self._remove_former()  # without locks, an older attempt may have published meanwhile
            for name in sorted(names, key=lambda name: name == RECORD):
                (self.work / name).replace(self.folder / name)
            self._remove_dead()

    def close(self) -> None:
        """Take the work folder away."""
        os.close(self._alive)
        shutil.rmtree(self.work, ignore_errors=True)

    @contextlib.contextmanager
    def _claim(self) -> Iterator[int]:
        """Yield the claim file, opened and locked against other attempts."""
        descriptor = os.open(self.folder / _CLAIM, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            with _tolerated():
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)

    def _remove_former(self) -> None:
        """Remove what an earlier attempt published, run.json first, so that files never mix under one run.json."""
        for pattern in (RECORD, *_PUBLISHED):
            for path in self.folder.glob(pattern):
                path.unlink(missing_ok=True)

    def _remove_dead(self) -> None:
        """Remove the work folders that no living process holds."""
        for folder in self.folder.glob(f"{_PREFIX}*"):
            if folder != self.work and _is_dead(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _hold(path: Path) -> int:
    descriptor = open_lock(path)
    with _tolerated():
        try_lock(descriptor)
    return descriptor


def _is_dead(folder: Path) -> bool:
    """Return whether no process holds a work folder; where there are no locks, nothing is called dead."""
    try:
        descriptor = os.open(folder / _ALIVE, os.O_RDWR)
    except OSError:
        return True
    try:
        return try_lock(descriptor)
    except OSError:
        return False
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _tolerated() -> Iterator[None]:
    """Go on without a lock where the file system has none."""
    try:
        yield
    except OSError as error:
        if not has_no_locks(error):
            raise
