"""The tables of a trace from the rows that were read: unusable ones out, in order, one array a column."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tracelock.trace import order
from tracelock.trace.columns import DeviceRows, FlowRows, HostKind, HostRows, Int8, Int64, MemoryRows
from tracelock.trace.kinds import Table
from tracelock.trace.sanity import usable_device, usable_host, usable_times
from tracelock.trace.store import DTYPES, Array, Store, absent
from tracelock.trace.tally import Tally

_SAMPLE: Final = 1 << 18


class Tables:
    """Makes tables of what a store has, and takes it from there as it goes."""

    def __init__(self, store: Store, tally: Tally) -> None:
        self.store, self.tally = store, tally
        self._centre = self._median_start()

    def _median_start(self) -> float:
        """Return the median of a sample of the starts of rows, in ns; rows at 0 have no say in it."""
        some = []
        for table in (Table.HOST, Table.DEVICE):
            starts = self.store.column(table, "start")
            if starts is not None:
                starts = starts[:: len(starts) // _SAMPLE + 1]
                some.append(starts[starts != 0])
        sample = np.concatenate(some) if some else np.empty(0, dtype=np.int64)
        return float(np.median(sample)) if len(sample) else 0.0

    def _kind(self, table: Table) -> Int8:
        kinds = self.store.kinds(table)
        return np.repeat(np.array([kind for kind, _ in kinds], dtype=np.int8), [rows for _, rows in kinds])

    def _needed(self, table: Table, name: str) -> Any:
        column = self.store.column(table, name)
        dtype = DTYPES[table][name]
        return np.full(self.store.rows(table), absent(dtype), dtype) if column is None else column

    def _columns(self, table: Table, chosen: Int64, kind: Int8 | None = None) -> dict[str, Array]:
        """Return all columns, their rows `chosen` in this order; those that no row has take no memory."""
        made: dict[str, Array] = {}
        for name, dtype in DTYPES[table].items():
            column = kind if name == "kind" else self.store.column(table, name)
            self.store.drop(table, name)
            if column is None:
                made[name] = np.broadcast_to(np.array(absent(dtype), dtype), len(chosen))
            else:
                column = column[chosen]
                made[name] = column if self.store.spill is None else self.store.spill.mapped(column)
        return made

    def host(self) -> HostRows:
        """Return the host rows."""
        start, duration = self._needed(Table.HOST, "start"), self._needed(Table.HOST, "duration")
        kind = self._kind(Table.HOST)
        number = self._needed(Table.HOST, "external")
        frames = kind == HostKind.PYTHON
        if frames.any():
            number[frames] = self._needed(Table.HOST, "python_id")[frames]
        (good,) = np.nonzero(usable_host(start, duration, self._centre, self.tally))
        chosen = good[order.host_order(start[good], duration[good], kind[good], number[good])]
        del start, duration, number, frames, good
        return HostRows(**self._columns(Table.HOST, chosen, kind))

    def device(self) -> DeviceRows:
        """Return the device rows."""
        names = ("start", "duration", "track", "stream", "correlation", "graph")
        rows = {name: self._needed(Table.DEVICE, name) for name in names}
        kind = self._kind(Table.DEVICE)
        (good,) = np.nonzero(usable_device(rows, kind, self._centre, self.tally))
        chosen = good[order.device_order(*(rows[name][good] for name in ("start", "duration", "stream")))]
        del rows, good
        return DeviceRows(**self._columns(Table.DEVICE, chosen, kind))

    def memory(self) -> MemoryRows:
        """Return the memory records."""
        return MemoryRows(**self._columns(Table.INSTANT, self._by_time(Table.INSTANT)))

    def flows(self) -> FlowRows:
        """Return the ends of flows."""
        return FlowRows(**self._columns(Table.FLOW, self._by_time(Table.FLOW), self._kind(Table.FLOW)))

    def _by_time(self, table: Table) -> Int64:
        time = self._needed(table, "time")
        (good,) = np.nonzero(usable_times(time, self._centre, self.tally))
        return good[order.time_order(time[good])]
