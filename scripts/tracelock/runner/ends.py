"""A log that keeps its first and last parts, however much is printed."""

from __future__ import annotations

from pathlib import Path

HEAD_BYTES = TAIL_BYTES = 500_000


class EndsLog:
    """Writes the first bytes at once, and keeps the last ones to write them at the end.

    Parameters
    ----------
    path
        The file, which is made.
    head, tail
        Bytes that are kept of either end.
    """

    def __init__(self, path: Path, head: int = HEAD_BYTES, tail: int = TAIL_BYTES) -> None:
        self._stream = path.open("ab", buffering=0)
        self._room, self._tail_bytes = head, tail
        self._tail = bytearray()
        self._left_out = self._lines_left_out = 0
        self.lost = False  # the disk is full, or the file is gone

    def write(self, data: bytes) -> None:
        """Take what was printed."""
        now, later = data[: self._room], data[self._room :]
        self._room -= len(now)
        self._put(now)
        self._tail += later
        if len(self._tail) > 2 * self._tail_bytes:
            self._cut()

    def close(self) -> None:
        """Write the last part, and say what was left out."""
        self._cut()
        if self._left_out:
            what = f"{self._left_out:,} bytes ({self._lines_left_out:,} lines) are left out here"
            self._put(f"\n[tracelock: {what}; the log keeps the first and the last part]\n".encode())
        self._put(bytes(self._tail))
        self._tail.clear()
        self._stream.close()

    def _cut(self) -> None:
        extra = len(self._tail) - self._tail_bytes
        if extra > 0:
            self._left_out += extra
            self._lines_left_out += self._tail.count(b"\n", 0, extra)
            del self._tail[:extra]

    def _put(self, data: bytes) -> None:
        """Write, or go on without where the disk is full: the run itself may still succeed."""
        try:
            while data:
                data = data[self._stream.write(data) or 0 :]
        except OSError:
            self.lost = True


def last_lines(path: Path, count: int) -> list[str]:
    """Return the last lines of a log, none where there is none."""
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, 2) - 20_000))
            return stream.read().decode("utf-8", errors="replace").splitlines()[-count:]
    except OSError:
        return []
