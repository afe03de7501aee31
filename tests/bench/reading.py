"""The reader against HTA's parser and orjson, on one file in one run; one process, two, and compressed."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from typing import Final

from tests.bench.measure import CACHE, Measured, mib, peers, python, run, table
from tests.bench.options import Options

REPEATS: Final = 3  # of ours, the shortest counts; the others take minutes and run once

READ: Final = """
import resource, sys
from tracelock.trace import read_trace
trace = read_trace(sys.argv[1], workers=int(sys.argv[2]))
print(trace.facts.events, "events")
peaks = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print("PEAK", sum(peaks) * 1024)
"""
HTA: Final = """
import sys
from hta.common.trace_parser import parse_trace_dataframe
from hta.configs.parser_config import ParserConfig
parse_trace_dataframe(sys.argv[1], ParserConfig.get_default_cfg())
"""
ORJSON: Final = """
import sys, orjson
with open(sys.argv[1], "rb") as stream:
    orjson.loads(stream.read())
"""


def bench(options: Options) -> None:
    """Measure and print; the last lines give the ratios that are the goals."""
    path = options.path()
    plain, packed = _both(path)
    size, interpreter = plain.stat().st_size, str(peers())
    one, two, gz = _best_of(
        REPEATS,
        ("tracelock, one process", READ, str(plain), "1"),
        ("tracelock, two processes", READ, str(plain), "2"),
        ("tracelock, .json.gz", READ, str(packed), "1"),
    )
    hta = run("HTA 0.5.0, its default parser", [interpreter, "-W", "ignore", "-c", HTA, str(plain)])
    orjson = run("orjson.loads, no columns", [interpreter, "-c", ORJSON, str(plain)])
    print(f"{path.name}: {size / 1e6:.0f} MB of JSON, {one.output.split()[0]} events\n")
    rows = [_row(measured, size) for measured in (one, two, gz, hta, orjson)]
    print(table(("reader", "MB per CPU-second", "MB per second", "peak memory", "of the JSON"), rows))
    print(
        f"\nCPU against HTA: {hta.cpu_s / one.cpu_s:.1f} ×; two processes: {one.wall_s / two.wall_s:.2f} × one; "
        f".json.gz: {one.wall_s / gz.wall_s:.2f} × .json (by the clock), {one.cpu_s / gz.cpu_s:.2f} (by CPU)"
    )


def _best_of(repeats: int, *programs: tuple[str, ...]) -> list[Measured]:
    """Return the shortest of some runs of each program, which take turns: others use the machine, too."""
    rounds = [[python(*program) for program in programs] for _ in range(repeats)]
    return [min(runs, key=lambda measured: measured.wall_s) for runs in zip(*rounds, strict=True)]


def _row(measured: Measured, size: int) -> tuple[str, ...]:
    return (
        measured.name,
        f"{measured.per_cpu_s(size):.0f}",
        f"{measured.per_wall_s(size):.0f}",
        mib(measured.peak_bytes),
        f"{measured.peak_bytes / size:.2f}",
    )


def _both(path: Path) -> tuple[Path, Path]:
    """Return the file uncompressed and compressed, making in .cache/bench what is absent."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with path.open("rb") as stream:
        is_packed = stream.read(2) == b"\x1f\x8b"
    other = CACHE / (path.name.removesuffix(".gz") if is_packed else f"{path.name}.gz")
    if not other.is_file():
        part = other.with_suffix(".part")
        reading, writing = (gzip.open, Path.open) if is_packed else (Path.open, gzip.open)
        with reading(path, "rb") as source, writing(part, "wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        part.rename(other)
    return (other, path) if is_packed else (path, other)
