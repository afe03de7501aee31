"""Clocks that only move forward: a host with its threads, and the streams and copy engines of one device.

Streams are first in, first out, and kernels of different streams do not slow each other, so the end of a row is known
when it is launched: one pass over the host's program is the whole simulation. Times are integer nanoseconds.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tracelock.faults.simulator.machine import Machine

COMPUTE, COPY, COMMUNICATION = 7, 13, 20  # streams, numbered as a trace numbers them
MAIN, BACKWARD = 0, 1  # threads
STAGED_BYTES = 65536  # pageable copies up to this size return before the data has arrived


def ns(microseconds: float) -> int:
    """Return microseconds as whole nanoseconds."""
    return round(microseconds * 1000)


@dataclass(frozen=True)
class Row:
    """One event of the trace. `where` is a thread (host rows) or a stream (device rows)."""

    category: str
    name: str
    where: int
    start: int
    duration: int
    args: Mapping[str, Any]


@dataclass
class Tape:
    """What is recorded, while it is switched on."""

    recording: bool = False
    rows: list[Row] = field(default_factory=list)

    def write(self, category: str, name: str, where: int, start: int, end: int, **args: Any) -> None:
        """Record one row if the tape runs."""
        if self.recording:
            self.rows.append(Row(category, name, where, start, end - start, args))


class Device:
    """Streams and copy engines: when each is free again."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.free: dict[int, int] = {}  # by stream
        self.engines: dict[str, int] = {}  # by direction
        self.waiting: deque[int] = deque()  # starts of launched rows that had not begun

    def place(self, stream: int, ready: int, duration: int, engine: str | None = None) -> tuple[int, int]:
        """Return start and end of a row launched at `ready`; it occupies its stream, and its engine if it is a copy."""
        free = self.free.get(stream, 0) + ns(self.machine.gap_us)
        start = max(ready + ns(self.machine.latency_us), free, self.engines.get(engine or "", 0))
        end = start + duration
        self.free[stream] = end
        if engine:
            self.engines[engine] = end
        self.waiting.append(start)
        return start, end

    def room_at(self, now: int) -> int:
        """Return when the launch queue has room for one more."""
        while self.waiting and self.waiting[0] <= now:
            self.waiting.popleft()
        too_many = len(self.waiting) - self.machine.queue_depth
        return now if too_many < 0 else max(now, self.waiting[too_many])

    def wait(self, stream: int, other: int) -> None:
        """Let `stream` wait for everything launched on `other` so far."""
        self.free[stream] = max(self.free.get(stream, 0), self.free.get(other, 0))

    def hold(self, stream: int, now: int, microseconds: float) -> None:
        """Let `stream` do nothing for a while once its work is done: another process has the device."""
        self.free[stream] = max(self.free.get(stream, 0), now) + ns(microseconds)

    def idle_at(self, stream: int | None = None) -> int:
        """Return when a stream, or the whole device, has finished what was launched."""
        return max(self.free.values(), default=0) if stream is None else self.free.get(stream, 0)


class Host:
    """The threads of one process: at any time one of them works, the others wait for it."""

    def __init__(self, machine: Machine, random: Random, tape: Tape) -> None:
        self.machine, self.random, self.tape = machine, random, tape
        self.device = Device(machine)
        self.now = ns(1000.0)
        self.thread = MAIN
        self.identifiers = 0
        self.operators = [0]  # External ids of the operators around the program's place
        self.slow_down = 1.0  # clocks: device time is multiplied by this

    def work(self, microseconds: float) -> None:
        """Spend host time, with the noise of the machine."""
        noise = math.exp(self.random.gauss(0.0, self.machine.noise))
        self.now += ns(microseconds * noise / self.machine.host_speed)

    def sleep(self, microseconds: float) -> None:
        """Spend time that does not depend on the processor: disk, network."""
        self.now += ns(microseconds * math.exp(self.random.gauss(0.0, self.machine.noise)))

    @contextmanager
    def span(self, name: str, category: str = "cpu_op", **args: Any) -> Iterator[None]:
        """Record what happens inside as one row of the current thread."""
        start, thread = self.now, self.thread
        self.identifiers += 1
        identifier = self.identifiers
        self.operators.append(identifier)
        yield
        self.operators.pop()
        self.tape.write(category, name, thread, start, self.now, external=identifier, **args)

    @contextmanager
    def on(self, thread: int) -> Iterator[None]:
        """Let the program continue on another thread."""
        previous, self.thread = self.thread, thread
        yield
        self.thread = previous

    def call(self, name: str, microseconds: float, until: int = 0) -> int:
        """Make one runtime call that returns no earlier than `until`; return its correlation id."""
        self.identifiers += 1
        correlation, start = self.identifiers, self.now
        self.work(microseconds)
        self.now = max(self.now, until)
        external = self.operators[-1]
        self.tape.write("cuda_runtime", name, self.thread, start, self.now, correlation=correlation, external=external)
        return correlation

    def _launched(
        self, category: str, name: str, stream: int, times: tuple[int, int], correlation: int, **args: Any
    ) -> None:
        external = self.operators[-1]
        self.tape.write(category, name, stream, *times, correlation=correlation, external=external, **args)

    def launch(self, name: str, microseconds: float, stream: int = COMPUTE, **args: Any) -> int:
        """Launch one kernel; return when it ends. Blocks while the launch queue is full."""
        room = self.device.room_at(self.now)
        call = self.machine.launch_us
        correlation = self.call("cudaLaunchKernel", call, room + ns(0.5 * call) if room > self.now else 0)
        times = self.device.place(stream, self.now, ns(microseconds * self.slow_down))
        self._launched("kernel", name, stream, times, correlation, **args)
        return times[1]

    def launch_graph(self, kernels: list[tuple[str, float]], stream: int = COMPUTE) -> None:
        """Launch recorded kernels by one call; all rows carry its correlation id."""
        correlation = self.call("cudaGraphLaunch", 12.0 + 0.02 * len(kernels))
        for name, microseconds in kernels:
            times = self.device.place(stream, self.now, ns(microseconds * self.slow_down))
            self._launched("kernel", name, stream, times, correlation, graph=1)
        self.device.waiting.clear()

    def clear(self, size: int) -> None:
        """Set device memory to zero."""
        correlation = self.call("cudaMemsetAsync", self.machine.launch_us)
        times = self.device.place(COMPUTE, self.now, ns(1.5 + size / self.machine.memory_gbs / 1e3))
        self._launched("gpu_memset", "Memset (Device)", COMPUTE, times, correlation, bytes=size)

    def copy(self, direction: str, size: int, *, pinned: bool, waits: bool, stream: int = COMPUTE) -> None:
        """Copy between host and device as PyTorch does: one asynchronous call, and a wait if `waits`.

        A pageable copy is staged through memory of the driver: its call returns when the data is on its way, which
        for more than 64 KiB means when the stream has come to it and the copy is done.
        """
        rate = self.machine.pinned_gbs if pinned else self.machine.pageable_gbs
        duration = ns(1.8 + size / rate / 1e3)
        memory = "Pinned" if pinned else "Pageable"
        names = {"HtoD": f"{memory} -> Device", "DtoH": f"Device -> {memory}"}
        start_of_call = self.now
        times = self.device.place(stream, start_of_call + ns(self.machine.launch_us), duration, engine=direction)
        staged = not pinned and size > STAGED_BYTES
        correlation = self.call("cudaMemcpyAsync", self.machine.launch_us, times[1] if staged else 0)
        name = f"Memcpy {direction} ({names[direction]})"
        self._launched("gpu_memcpy", name, stream, times, correlation, bytes=size)
        if waits:
            self.synchronize("cudaStreamSynchronize", stream)

    def synchronize(self, name: str = "cudaDeviceSynchronize", stream: int | None = None) -> None:
        """Wait for a stream or for the device."""
        until = self.device.idle_at(stream)
        self.call(name, 2.0, until + ns(4.0) if until > self.now else 0)
