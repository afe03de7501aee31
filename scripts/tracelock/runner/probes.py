"""What is sampled of machine and process tree beside the timed steps; see gpu_probes.py for GPUs.

Each probe has ``columns`` (units in their names) and ``read()``, which returns one value a column, None where the
value cannot be known.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Any, NamedTuple, Protocol

Value = float | int | str | None

HOST_COLUMNS = (
    "cpu_percent",  # of all cores of the machine, since the previous sample
    "process_cpu_percent",  # of this process and those below it; 100 is one core
    "rss_bytes",  # resident memory of this process
    "children_rss_bytes",  # the same of every process below it, separated by spaces
    "cpu_mhz",  # mean over the cores
    "load_1m",
)


class _Usage(NamedTuple):
    """What one process has used since it started."""

    process: tuple[int, float]  # its pid, which another may get later, and when it started
    spent: float  # CPU seconds
    rss: int  # resident bytes


class Probe(Protocol):
    """Something that can be sampled."""

    columns: tuple[str, ...]

    def read(self) -> list[Value]:
        """Return one value for each column."""
        ...

    def close(self) -> None:
        """Let go of whatever the probe holds."""
        ...


def host_probe(pid: int | None = None) -> Probe:
    """Return a probe of the machine and of the process tree below `pid` (this process): psutil's, else by /proc."""
    try:
        return PsutilProbe(pid)
    except ImportError:
        return ProcProbe(pid)


def descendants(pid: int) -> list[int]:
    """Return the processes below `pid`, whichever of their threads started them, without a walk over all of /proc.

    Raises
    ------
    OSError
        Where the kernel does not list children.
    """
    found = []
    pending = [pid]
    while pending:
        parent = pending.pop()
        try:
            children = _children(parent)
        except (FileNotFoundError, ProcessLookupError):
            if parent == pid:
                raise
            continue  # ended meanwhile
        pending += children
        found += children
    return found


def _children(pid: int) -> list[int]:
    """Return the children of a process; the kernel keeps them by the thread that started each (proc(5))."""
    main = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    for thread in Path(f"/proc/{pid}/task").iterdir():
        if thread.name != str(pid):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended meanwhile
                main += (thread / "children").read_text().split()
    return [int(child) for child in main]


class PsutilProbe:
    """Machine and process tree by psutil."""

    columns: tuple[str, ...] = HOST_COLUMNS

    def __init__(self, pid: int | None = None) -> None:
        import psutil

        self._psutil: Any = psutil
        self._pid = os.getpid() if pid is None else pid
        self._self: Any = None
        self._known: dict[int, Any] = {}
        self._meter = _CpuMeter(self._usages())
        self._cores = _CoreMeter(*self._ticks())

    def read(self) -> list[Value]:
        """Return one sample."""
        usages = self._usages()
        frequency = self._psutil.cpu_freq()
        return [
            self._cores.percent(*self._ticks()),
            self._meter.percent(usages),
            usages[0].rss if usages else None,
            " ".join(str(usage.rss) for usage in usages[1:]),
            float(frequency.current) if frequency is not None else None,
            os.getloadavg()[0],
        ]

    def close(self) -> None:
        """Nothing is held."""

    def _root(self) -> list[Any]:
        """Return the process that is watched, none where it has ended."""
        try:
            self._self = self._self or self._psutil.Process(self._pid)
        except self._psutil.Error:
            return []
        return [self._self]

    def _children(self) -> list[Any]:
        try:
            pids = descendants(self._pid)
        except OSError:
            return self._children_by_psutil()
        for pid in pids:
            if pid not in self._known and self._psutil.pid_exists(pid):
                self._known[pid] = self._psutil.Process(pid)
        return [self._known[pid] for pid in pids if pid in self._known]

    def _children_by_psutil(self) -> list[Any]:
        try:
            return [] if self._self is None else list(self._self.children(recursive=True))
        except self._psutil.Error:
            return []

    def _ticks(self) -> tuple[float, float]:
        """Return (busy, all) seconds of the machine's cores; psutil's own percentage starts anew in each thread."""
        times = self._psutil.cpu_times()._asdict()
        spent = sum(value for name, value in times.items() if not name.startswith("guest"))  # those are in user, too
        return spent - times["idle"] - times.get("iowait", 0.0), spent

    def _usages(self) -> list[_Usage]:
        """Return what the process and those below it have used, the process first; what has ended is left out."""
        return [found for process in (*self._root(), *self._children()) if (found := self._usage(process))]

    def _usage(self, process: Any) -> _Usage | None:
        try:
            times = process.cpu_times()
            known = process.pid, process.create_time()
            return _Usage(known, times.user + times.system, process.memory_info().rss)
        except self._psutil.Error:
            return None


class ProcProbe:
    """Machine and process tree by /proc; every value is None on systems without it."""

    columns: tuple[str, ...] = HOST_COLUMNS

    def __init__(self, pid: int | None = None) -> None:
        self._tick = os.sysconf("SC_CLK_TCK")
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._pid = os.getpid() if pid is None else pid
        self._meter = _CpuMeter(self._usages())
        self._cores = _CoreMeter(*self._ticks())

    def read(self) -> list[Value]:
        """Return one sample."""
        usages = self._usages()
        return [
            self._cores.percent(*self._ticks()),
            self._meter.percent(usages),
            usages[0].rss if usages else None,
            " ".join(str(usage.rss) for usage in usages[1:]),
            _proc_mhz(),
            os.getloadavg()[0],
        ]

    def close(self) -> None:
        """Nothing is held."""

    def _usages(self) -> list[_Usage]:
        """Return what the process and those below it have used, the process first; what has ended is left out."""
        try:
            pids = [self._pid, *descendants(self._pid)]
        except OSError:
            pids = [self._pid]
        return [found for pid in pids if (found := self._usage(pid))]

    def _usage(self, pid: int) -> _Usage | None:
        try:
            # The name in parentheses may hold spaces; fields are counted from behind it (proc(5)).
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        spent = (int(fields[11]) + int(fields[12])) / self._tick
        return _Usage((pid, float(fields[19])), spent, int(fields[21]) * self._page)

    def _ticks(self) -> tuple[int, int]:
        """Return (busy, all) ticks of the machine's cores since it started, or zeros."""
        try:
            fields = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        except OSError:
            return 0, 0
        return sum(fields) - fields[3] - fields[4], sum(fields)


class _CoreMeter:
    """Turns the (busy, all) time of the machine's cores into a percentage since the previous call."""

    def __init__(self, busy: float, spent: float) -> None:
        self._before = busy, spent

    def percent(self, busy: float, spent: float) -> float | None:
        """Return the busy share of all cores in %, or None where no time has passed or none is counted."""
        before, self._before = self._before, (busy, spent)
        passed = spent - before[1]
        return round(100 * (busy - before[0]) / passed, 1) if passed > 0 else None


class _CpuMeter:
    """Turns the CPU seconds of a changing set of processes into a percentage since the previous call.

    What a process used before the meter was made is not counted, nor is it where a process was missed by one sample.
    """

    def __init__(self, usages: list[_Usage]) -> None:
        self._spent = {usage.process: usage.spent for usage in usages}
        self._at = time.monotonic()

    def percent(self, usages: list[_Usage]) -> float | None:
        """Return the CPU time of all processes by the time that passed, 100 is one core; None where none is known."""
        now = time.monotonic()
        passed, self._at = now - self._at, now
        used = sum(max(0.0, usage.spent - self._spent.get(usage.process, 0.0)) for usage in usages)
        self._spent.update((usage.process, usage.spent) for usage in usages)
        return round(100 * used / passed, 1) if usages and passed > 0 else None


def _proc_mhz() -> float | None:
    """Return the mean clock of the cores by /proc/cpuinfo, or None."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return None
    clocks = [float(line.partition(":")[2]) for line in lines if line.startswith("cpu MHz")]
    return round(sum(clocks) / len(clocks), 1) if clocks else None
