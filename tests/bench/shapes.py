"""The whole answer for every shape of trace: real traces of ../shared, repeated until they are as large as asked for.

For each: ``tracelock analyze --json`` as a whole process, and the share of its phases in one process.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.bench.enlarge import enlarge
from tests.bench.measure import CACHE, ROOT, python, table
from tests.bench.options import Options

BY_NAME_ONLY = True  # each is measured as long as reading is
SHAPES: Final = {
    "CUDA, collectives, fractional clock": "hta-nccl",
    "CUDA, digits beyond a float": "hta-ns-resolution",
    "ROCm, Python frames": "tracelens-mi300-resnet-checkpoint",
    "CUDA, call stacks, memory, whole µs": "kineto-resnet50-workers0",
    "CUDA, frames, memory, shapes": "tracelens-h100-qwen",
    "CPU only": "hta-cpu-only",
}
WHOLE: Final = """
import resource, sys
from tracelock.cli import main
try:
    main(["analyze", "--json", sys.argv[1]])
except SystemExit as end:
    assert not end.code
peaks = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print("PEAK", sum(peaks) * 1024)
"""
PHASES: Final = """
import sys, time
clock = time.process_time
times = [clock()]
from tracelock.analysis import document
from tracelock.analysis.analyze import analyze
from tracelock.diagnosis import diagnose
from tracelock.io import stable_json
from tracelock.trace import read_trace
times.append(clock())
trace = read_trace(sys.argv[1], workers=1)
times.append(clock())
analysis = analyze(trace)
times.append(clock())
stable_json(document.encode(diagnose(analysis)))
times.append(clock())
print(*(f"{after - before:.2f}" for before, after in zip([0.0, *times[1:]], times[1:])))
"""


def bench(options: Options) -> None:
    """Measure each shape and print one row."""
    traces = ROOT.parent / "shared" / "traces"
    if not traces.is_dir():
        print("not measured: the folder ../shared with real traces is absent")
        return
    rows = [_row(shape, _enlarged(traces / f"{name}.json.gz", options.megabytes)) for shape, name in SHAPES.items()]
    head = ("shape", "MB", "CPU-s", "s", "peak MB", "of the file", "start, read, analyse, diagnose: CPU-s, one process")
    print(table(head, rows))


def _enlarged(source: Path, megabytes: float) -> Path:
    path = CACHE / f"{source.name.partition('.')[0]}-{megabytes:g}.json"
    if not path.is_file():
        CACHE.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        enlarge(source, part, megabytes)
        part.rename(path)
    return path


def _row(shape: str, path: Path) -> tuple[str, ...]:
    whole = python(shape, WHOLE, str(path))
    phases = ", ".join(python("phases", PHASES, str(path)).output.split())
    size = path.stat().st_size
    peak = whole.peak_bytes
    figures = (size / 1e6, whole.cpu_s, whole.wall_s, peak / 1e6, peak / size)
    return (shape, *(f"{figure:.{digits}f}" for figure, digits in zip(figures, (0, 2, 1, 0, 2), strict=True)), phases)
