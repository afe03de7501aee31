"""The caching allocator of the device: what is held, what is reserved, and the records that the profiler makes."""

from __future__ import annotations

from tracelock.faults.simulator.timeline import Host

BLOCK = 2 * 2**20  # reserved memory grows by blocks
ROUND = 512  # every allocation is rounded up to this


class Allocator:
    """Levels of one device; addresses only need to differ."""

    def __init__(self, host: Host, held: int, reserved: int = 0) -> None:
        self.host = host
        self.allocated = held
        self.reserved = max(reserved, -(-held // BLOCK) * BLOCK)
        self.next_address = 0x7F0000000000

    def take(self, size: float) -> tuple[int, int]:
        """Allocate `size` bytes in the operator at hand; return address and rounded size."""
        rounded = max(ROUND, -(-int(size) // ROUND) * ROUND)
        self.next_address += rounded
        self.allocated += rounded
        if self.allocated > self.reserved:
            self.reserved += max(BLOCK, -(-rounded // BLOCK) * BLOCK)
        self._record(self.next_address, rounded)
        return self.next_address, rounded

    def give(self, block: tuple[int, int]) -> None:
        """Free what `take` returned."""
        self.allocated -= block[1]
        self._record(block[0], -block[1])

    def _record(self, address: int, size: int) -> None:
        now, thread = self.host.now, self.host.thread
        levels = (size, self.allocated, self.reserved)
        self.host.tape.write("cpu_instant_event", "[memory]", thread, now, now, address=address, levels=levels)
