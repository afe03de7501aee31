"""The tables of a trace from the rows that were read: unusable ones out, in order, one array a column."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np

from tracelock.trace import order
from tracelock.trace.columns import DeviceRows, FlowRows, HostKind, HostRows, Int8, Int64, MemoryRows
from tracelock.trace.kinds import Table
from tracelock.trace.sanity import Mask, usable_device, usable_host, usable_times
from tracelock.trace.store import DTYPES, Array, Store, absent
from tracelock.trace.tally import Tally

_SAMPLE: Final = 1 << 18
_WRITERS: Final = 2  # threads, each with a column in memory on its way to disk


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
        return order.median(sample) if len(sample) else 0.0

    def _kind(self, table: Table) -> Int8:
        kinds = self.store.kinds(table)
        return np.repeat(np.array([kind for kind, _ in kinds], dtype=np.int8), [rows for _, rows in kinds])

    def _needed(self, table: Table, name: str) -> Any:
        column = self.store.column(table, name)
        dtype = DTYPES[table][name]
        return np.full(self.store.rows(table), absent(dtype), dtype) if column is None else column

    def _columns(self, table: Table, chosen: Int64, kind: Int8 | None = None) -> dict[str, Array]:
        """Return all columns, their rows `chosen` in this order; those that no row has take no memory."""
        spill = self.store.spill

        def made(name: str) -> Array:
            column = kind if name == "kind" else self.store.column(table, name)
            self.store.drop(table, name)
            if column is None:
                return np.broadcast_to(np.array(absent(DTYPES[table][name]), DTYPES[table][name]), len(chosen))
            return column[chosen] if spill is None else spill.mapped(column[chosen])

        names = list(DTYPES[table])
        if spill is None:
            return {name: made(name) for name in names}
        with ThreadPoolExecutor(_WRITERS) as writers:
            return dict(zip(names, writers.map(made, names), strict=True))

    def host(self) -> HostRows:
        """Return the host rows."""
        table, kind = Table.HOST, self._kind(Table.HOST)
        start = self._needed(table, "start")
        good = usable_host(start, self._needed(table, "duration"), self._centre, self.tally)
        chosen = order.host_order(
            start, lambda: self._needed(table, "duration"), lambda: kind, lambda: self._number(kind)
        )
        del start
        return HostRows(**self._columns(table, _only(chosen, good), kind))

    def _number(self, kind: Int8) -> Array:
        """Return what grows with the order in which host rows of one kind were entered."""
        number: Array = self._needed(Table.HOST, "external")
        frames = kind == HostKind.PYTHON
        if frames.any():
            number[frames] = self._needed(Table.HOST, "python_id")[frames]
        return number

    def device(self) -> DeviceRows:
        """Return the device rows."""
        table, kind = Table.DEVICE, self._kind(Table.DEVICE)
        names = ("start", "duration", "track", "stream", "correlation", "graph")
        rows = {name: self._needed(table, name) for name in names}
        good = usable_device(rows, kind, self._centre, self.tally)
        chosen = order.device_order(rows["start"], lambda: rows["duration"], lambda: rows["stream"])
        return DeviceRows(**self._columns(table, _only(chosen, good), kind))

    def memory(self) -> MemoryRows:
        """Return the memory records."""
        return MemoryRows(**self._columns(Table.INSTANT, self._by_time(Table.INSTANT)))

    def flows(self) -> FlowRows:
        """Return the ends of flows."""
        return FlowRows(**self._columns(Table.FLOW, self._by_time(Table.FLOW), self._kind(Table.FLOW)))

    def _by_time(self, table: Table) -> Int64:
        time = self._needed(table, "time")
        return _only(order.time_order(time), usable_times(time, self._centre, self.tally))


def _only(chosen: Int64, good: Mask) -> Int64:
    """Return the rows of an order that are usable."""
    return chosen if good.all() else chosen[good[chosen]]
