"""The simulator against arithmetic by hand, slow twins, and the reader."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracelock.analysis.analyze import analyze
from tracelock.faults.simulator import machine, network
from tracelock.faults.simulator.job import Data, Habits, Job, Settings, World
from tracelock.faults.simulator.kineto import Style, write_trace
from tracelock.faults.simulator.loader import Workers
from tracelock.faults.simulator.machine import A100
from tracelock.faults.simulator.simulate import Outcome, simulate, true_gain
from tracelock.faults.simulator.timeline import COMPUTE, COPY, Host, Row, Tape, ns
from tracelock.trace import read_trace

EXACT = replace(A100, noise=0.0, launch_us=5.0, latency_us=3.0, gap_us=1.0, pinned_gbs=10.0, pageable_gbs=2.0)


def host(**changes: float) -> Host:
    made = Host(replace(EXACT, **changes), Random(0), Tape(recording=True))  # type: ignore[arg-type]
    made.now = 0
    return made


def job(seed: int = 1, **changes: object) -> Job:
    random = Random(seed)
    layers = [network.linear(random, 512, 512, 64) for _ in range(6)]
    model = network.Network("mlp", tuple(layers), 4096)
    return replace(Job(EXACT, model, Settings(batch_size=64), Data(), Habits(), seed=seed), **changes)  # type: ignore[arg-type]


def rows(outcome: Outcome, category: str, rank: int = 0) -> list[Row]:
    return [row for row in outcome.ranks[rank].tape.rows if row.category == category]


# Clocks, by hand.


def test_kernels_wait_in_their_stream_and_start_late_on_an_idle_one() -> None:
    at = host()
    at.launch("a", 10.0)
    at.launch("b", 10.0)
    first, second = (row for row in at.tape.rows if row.category == "kernel")
    assert (first.start, first.duration) == (ns(8.0), ns(10.0))  # a call of 5 µs, 3 µs of latency
    assert second.start == ns(19.0)  # behind the first, with a gap of 1 µs
    assert at.now == ns(10.0)  # the host waited for neither


def test_a_full_queue_blocks_the_host() -> None:
    at = host(queue_depth=2)
    for _ in range(5):
        at.launch("k", 1000.0)
    assert at.now > ns(1000.0)
    calls = [row for row in at.tape.rows if row.name == "cudaLaunchKernel"]
    assert [row.duration > ns(500.0) for row in calls] == [False, False, False, True, True]


@pytest.mark.parametrize(
    ("pinned", "waits", "host_us"),
    [(True, False, 5.0), (True, True, 5.0 + 2.0 + 3.0 + 101.8 - 2.0 + 4.0), (False, False, 5.0 + 3.0 + 501.8)],
)
def test_copies_hold_the_host_up_as_their_memory_makes_them(pinned: bool, waits: bool, host_us: float) -> None:
    at = host()
    at.copy("HtoD", 1_000_000, pinned=pinned, waits=waits)
    assert at.now == ns(host_us)
    (copied,) = (row for row in at.tape.rows if row.category == "gpu_memcpy")
    assert copied.duration == ns(101.8 if pinned else 501.8)
    assert copied.name == f"Memcpy HtoD ({'Pinned' if pinned else 'Pageable'} -> Device)"


def test_a_copy_on_its_own_stream_runs_beside_kernels() -> None:
    at = host()
    at.launch("k", 500.0)
    at.copy("HtoD", 1_000_000, pinned=True, waits=False, stream=COPY)
    assert at.device.idle_at(COPY) < at.device.idle_at(COMPUTE)


def test_synchronising_returns_after_the_device() -> None:
    at = host()
    end = at.launch("k", 500.0)
    at.synchronize()
    assert at.now == end + ns(4.0)
    at.synchronize()
    assert at.now == end + ns(6.0)  # nothing to wait for: the call alone


def test_rows_of_a_graph_share_one_launch_and_follow_each_other() -> None:
    at = host()
    at.launch_graph([("a", 2.0), ("b", 2.0), ("c", 2.0)])
    kernels = [row for row in at.tape.rows if row.category == "kernel"]
    assert len({row.args["correlation"] for row in kernels}) == 1
    assert [after.start - before.start for before, after in itertools.pairwise(kernels)] == [ns(3.0)] * 2


# The loader, against a slow twin that walks through time.


def slow_loader(workers: int, prefetch: int, costs: list[int], asks: list[int]) -> Iterator[int]:
    """Yield when each batch is taken: worker i makes batches i, i + workers, ... in order, asked for one by one."""
    asked = [0] * (workers * prefetch)
    free = [0] * workers
    ready: list[int] = []
    now = 0
    for number, pause in enumerate(asks):
        now += pause
        while len(ready) < len(asked):
            batch = len(ready)
            worker = batch % workers
            free[worker] = max(free[worker], asked[batch]) + costs[batch]
            ready.append(free[worker])
        now = max(now, ready[number])
        asked.append(now)
        yield now


@given(st.integers(1, 4), st.integers(1, 3), st.lists(st.integers(0, 50), min_size=1, max_size=20), st.data())
def test_workers_hand_out_batches_as_a_slow_twin_does(
    workers: int, prefetch: int, asks: list[int], data: st.DataObject
) -> None:
    count = workers * prefetch + len(asks)
    costs = data.draw(st.lists(st.integers(1, 200), min_size=count + 1, max_size=count + 1))
    supply = iter(costs)
    made = Workers(workers, prefetch, 0, 0, lambda: next(supply))
    now, taken = 0, []
    for pause in asks:
        now = made.next_ready(now + pause)
        taken.append(now)
    assert taken == list(slow_loader(workers, prefetch, costs, asks))


# Whole jobs.


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_what_is_written_is_read_back_to_the_row(seed: int, whole: bool) -> None:
    random = Random(seed)
    drawn = Job(machine.draw(random), network.draw(random), Settings(batch_size=8), seed=seed)
    outcome = simulate(drawn, timed=1, recorded=3)
    folder = Path(__file__).parent
    path = folder / f".simulated-{seed}-{whole}.pt.trace.json.gz"
    try:
        write_trace(path, drawn, outcome, style=Style(whole_microseconds=whole))
        trace = read_trace(path)
    finally:
        path.unlink(missing_ok=True)
    assert trace.facts.quality == "complete"
    assert not trace.facts.warnings
    assert trace.facts.devices[0].name == drawn.machine.name
    for kind, category in ((0, "kernel"), (1, "gpu_memcpy")):
        mine = trace.device.kind == kind
        assert mine.sum() == len(rows(outcome, category))
        written = sum(row.duration for row in rows(outcome, category))
        slack = 2000 * int(mine.sum()) if whole else 0
        assert abs(int(trace.device.duration[mine].sum()) - written) <= slack


def test_figures_of_a_simulated_trace_are_those_of_the_simulation(tmp_path: Path) -> None:
    outcome = simulate(job(), timed=2, recorded=6)
    path = tmp_path / "t.json.gz"
    write_trace(path, job(), outcome)
    analysis = analyze(read_trace(path))
    assert (analysis.step.source, len(analysis.steps)) == ("ProfilerStep", 6)
    assert analysis.step.mean_us == pytest.approx(outcome.step_ns / 1000, rel=0.03)
    assert sum(kernel.calls for kernel in analysis.kernels) == len(rows(outcome, "kernel"))
    assert analysis.gpus[0].linked_share == 1.0


def test_the_same_job_is_the_same_twice() -> None:
    assert simulate(job(), 3, 2).ranks[0].tape.rows == simulate(job(), 3, 2).ranks[0].tape.rows


def test_rows_of_one_stream_never_overlap_and_calls_nest() -> None:
    outcome = simulate(job(habits=Habits(sync="item", sync_times=4, prefetches=True)), timed=1, recorded=3)
    for stream in (COMPUTE, COPY):
        mine = sorted(
            (row.start, row.start + row.duration)
            for row in outcome.ranks[0].tape.rows
            if row.where == stream and row.category in ("kernel", "gpu_memcpy")
        )
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(mine))
    launches = {row.args["correlation"]: row for row in rows(outcome, "cuda_runtime")}
    for kernel in rows(outcome, "kernel"):
        assert launches[kernel.args["correlation"]].start < kernel.start


def test_a_collective_ends_everywhere_at_once_when_the_last_has_come() -> None:
    outcome = simulate(job(world=World(ranks=3, straggler=2.0)), timed=1, recorded=2)
    calls = [[row for row in rows(outcome, "kernel", rank) if "nccl" in row.name] for rank in range(3)]
    assert len(calls[0]) == len(calls[1]) == len(calls[2]) > 0
    for meeting in zip(*calls, strict=True):
        ends = {row.start + row.duration for row in meeting}
        assert len(ends) == 1
        assert max(row.start for row in meeting) < ends.pop()


@pytest.mark.parametrize(
    ("worse", "low"),
    [
        ({"settings": Settings(batch_size=64, num_workers=0), "data": Data(sample_us=100.0)}, 0.5),
        ({"habits": Habits(slow_sample_us=50.0)}, 0.3),
        ({"clock": 0.5}, 0.3),
        ({"settings": Settings(batch_size=64, optimizer_foreach=False)}, 0.0),
    ],
)
def test_what_is_worse_costs_time(worse: dict[str, object], low: float) -> None:
    healthy = job(data=Data(sample_us=1.0))
    assert true_gain(replace(healthy, **worse), healthy) > low  # type: ignore[arg-type]


def test_workers_that_start_anew_make_the_first_batch_of_each_epoch_late() -> None:
    short = Data(sample_us=1.0, epoch_steps=5, worker_start_us=100_000.0)
    outcome = simulate(job(data=short, settings=Settings(batch_size=64, persistent_workers=False)), timed=15)
    loop = outcome.ranks[0]
    late = [number for number, step in enumerate(loop.times) if step.loading > ns(50_000.0)]
    assert late == [start for start in loop.epoch_starts if start < len(loop.times)]
