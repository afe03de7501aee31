"""The measurement itself: warm up, time without the profiler, record with it. Imports torch."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from tracelock.errors import EXIT_FAILED, Problem, TracelockError
from tracelock.runner import phase
from tracelock.runner.failure import LimitError
from tracelock.runner.find import build_workload, find_workload
from tracelock.runner.loop import Budget, Loop, Steps
from tracelock.runner.probes import Probe
from tracelock.runner.process import overdue_after, peak_rss_bytes, seed_everything
from tracelock.runner.sampler import Sampler
from tracelock.runner.settings import Setting, Settings, resolve
from tracelock.runner.spec import Spec
from tracelock.runner.window import Window, record_window
from tracelock.runner.workload import Workload


@dataclass
class Prepared:
    """A workload, built, with the settings that it was given and those that it declares itself."""

    workload: Workload
    settings: Settings
    own: tuple[Setting, ...]


@dataclass
class Measurement:
    """Everything that was measured in one run."""

    warmup: Steps
    timed: Steps
    window: Window
    sampler: Sampler
    memory: dict[str, int | None]
    epochs: int


def choose_device(asked: str) -> str:
    """Return ``cuda:0`` where a GPU can be used and may be, else ``cpu``.

    Raises
    ------
    TracelockError
        If a GPU is asked for, and torch finds none.
    """
    if asked != "cpu" and torch.cuda.is_available():
        return "cuda:0"
    if asked == "cuda":
        what = f"is cuda, but torch {torch.__version__} finds no GPU here"
        raise TracelockError(Problem("device", what, "use auto or cpu"), EXIT_FAILED)
    return "cpu"


def prepare(spec: Spec, device: str, threads: int) -> Prepared:
    """Find and build the workload of `spec`, with seeds, threads and the settings of the whole process in force.

    Raises
    ------
    TracelockError
        If there is no such workload, or its settings are wrong.
    """
    where = f"{spec.path}: workload"
    build, own = find_workload(spec.workload, where)
    settings = Settings(resolve(spec.settings, own, f"{spec.path}: settings"), device, spec.seed)
    settings.read.add("threads")
    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision(settings["matmul_precision"])
    torch.backends.cudnn.benchmark = settings["cudnn_benchmark"]
    seed_everything(spec.seed)
    return Prepared(build_workload(build, settings, where), settings, own or ())


def measure(
    spec: Spec, workload: Workload, device: str, probes: Sequence[Probe], folder: Path, tell: Callable[[str], None]
) -> Measurement:
    """Measure a workload by the plan and within the limits of `spec`; traces are written to `folder`."""
    limit = spec.limits.max_duration_s
    loop = Loop(workload, device, Budget(spec.limits))
    window_steps = spec.profiler.steps
    overdue_s = None if limit is None else 2 * limit + 60
    phase.enter(phase.MEASURING, overdue_s)
    with overdue_after(overdue_s):
        _forget_peaks(device)
        warmup = loop.run(spec.timing.warmup_steps, keep_steps=window_steps + 1)
        gc.collect()
        with Sampler(probes) as sampler:
            timed = loop.run(spec.timing.steps, keep_steps=window_steps)
        if not timed.step_ns:
            raise LimitError(f"{timed.stopped_by} leaves no time for a single timed step", EXIT_FAILED)
        memory = _memory(device, sampler)
        tell(f"timed {len(timed.step_ns)} steps: mean {timed.duration_ns / len(timed.step_ns) / 1e6:.2f} ms")
        window = record_window(loop, spec.profiler, folder, spec.limits.max_trace_mb)
    loop.feed.close()
    return Measurement(warmup, timed, window, sampler, memory, loop.feed.epochs)


def _forget_peaks(device: str) -> None:
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats()


def _memory(device: str, sampler: Sampler) -> dict[str, int | None]:
    """Return the memory peaks of warm-up and timed steps, before the profiler adds its own."""
    on_gpu = device != "cpu"
    return {
        "peak_rss_bytes": peak_rss_bytes(),
        "peak_tree_rss_bytes": sampler.peak_bytes(),
        "peak_allocated_bytes": torch.cuda.max_memory_allocated() if on_gpu else None,
        "peak_reserved_bytes": torch.cuda.max_memory_reserved() if on_gpu else None,
    }
