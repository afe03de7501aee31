"""The work of ``tracelock memory``."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
from rich.console import Console
from rich.text import Text

from tracelock.analysis.snapshot import DeviceMemory, Moment, read_snapshot
from tracelock.cli._grid import grid
from tracelock.io import schema, stable_json

_MIB = 1 << 20
_WIDTH = 44  # of 80 columns


def run(file: Path, top: int, json: bool) -> None:
    """Print who holds the memory of each device in the snapshot `file`."""
    devices = read_snapshot(file)
    if json:
        whole = {"schema": schema("memory-snapshot"), "file": str(file), "devices": msgspec.to_builtins(devices)}
        sys.stdout.write(stable_json(whole))
        return
    console = Console(highlight=False, markup=False, emoji=False)
    if not devices:
        console.print("The snapshot knows no device: nothing was allocated.")
    for device in devices:
        _show(console, device, top)


def _show(console: Console, device: DeviceMemory, top: int) -> None:
    console.print(Text(f"Device {device.device}: {_mib(device.reserved_bytes)} reserved at the end", "bold"))
    for failure in device.failures:
        asked, free = _mib(failure.asked_bytes), _mib(failure.free_bytes)
        _moment(console, f"Out of memory: {asked} were asked for, the device had {free} free; held then", failure, top)
    if device.peak is None:
        console.print(
            Text("The peak is unknown: torch.cuda.memory._record_memory_history() was not on.", "yellow"),
        )
    else:
        _moment(console, f"Peak of the {device.recorded:,} recorded allocations and frees", device.peak, top)
    _moment(console, "At the end", device.end, top)


def _moment(console: Console, title: str, moment: Moment, top: int) -> None:
    console.print(Text(f"\n{title}: {_mib(moment.bytes)}", "bold"))
    rows = [
        (_short(each.place), _mib(each.bytes), f"{100 * each.bytes / max(moment.bytes, 1):.1f} %", f"{each.blocks:,}")
        for each in moment.holders[:top]
    ]
    if rows:
        console.print(grid(("asked for at", "held", "share", "blocks"), rows))
    if len(moment.holders) > top:
        console.print(Text(f"({len(moment.holders) - top} more places; --top shows more)", "dim"))


def _short(place: str) -> str:
    """Return the end of a place, which tells most."""
    return place if len(place) <= _WIDTH else f"…{place[1 - _WIDTH :]}"


def _mib(count: int | None) -> str:
    return "an unknown number of bytes" if count is None else f"{count / _MIB:,.1f} MiB"
