"""The training loop: epochs, bounds, and what is measured of each step."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tracelock.errors import TracelockError
from tracelock.runner import loop as module
from tracelock.runner.loop import Budget, Feed, Loop, Steps
from tracelock.runner.protocol import Limits
from tracelock.runner.workload import Workload, count_samples, first_tensor

UNBOUNDED = Limits(None, None, None)


class Epochs:
    """A loader that notes when its iterators begin and end."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.notes: list[str] = []

    def __iter__(self) -> Any:
        epochs = self

        class Iterator:
            def __init__(self) -> None:
                epochs.notes.append("begin")
                self.left = deque(range(epochs.length))

            def __iter__(self) -> Any:
                return self

            def __next__(self) -> int:
                if not self.left:
                    raise StopIteration
                return self.left.popleft()

            def __del__(self) -> None:
                epochs.notes.append("end")

        return Iterator()


def workload(length: int, step: Any = lambda batch: None) -> Workload:
    return Workload(loader=Epochs(length), step=step)


@given(length=st.integers(1, 5), count=st.integers(0, 20))
def test_batches_are_those_of_nested_for_loops(length: int, count: int) -> None:
    feed = Feed(workload(length))
    expected = [batch for _ in range(count) for batch in range(length)][:count]
    assert [feed.next() for _ in range(count)] == expected
    assert feed.epochs == -(-count // length)


def test_an_epochs_workers_end_before_the_next_ones_begin() -> None:
    work = workload(2)
    feed = Feed(work)
    for _ in range(5):
        feed.next()
    feed.close()
    assert work.loader.notes == ["begin", "end", "begin", "end", "begin", "end"]  # type: ignore[attr-defined]


def test_a_loader_without_batches_says_so_instead_of_turning_for_ever() -> None:
    with pytest.raises(TracelockError, match="gives no batch") as caught:
        Feed(workload(0)).next()
    assert caught.value.exit_code == 1


def test_each_step_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10**9, 1000))
    monkeypatch.setattr(module.time, "perf_counter_ns", lambda: next(clock))
    steps = Loop(workload(3), "cpu", Budget(UNBOUNDED)).run(4)
    assert steps.loading_ns == [1000] * 4
    assert steps.step_ns == [2000] * 4
    assert steps.duration_ns == 13000  # 2 readings at the edges and 3 a step
    assert steps.device_us() is None
    assert steps.stopped_by is None


class FakeTime:
    """A clock that a step moves on."""

    def __init__(self, step_s: float) -> None:
        self.now = 0.0
        self.step_s = step_s

    def monotonic(self) -> float:
        return self.now

    def perf_counter_ns(self) -> int:
        return int(self.now * 1e9)

    def step(self, _: object) -> None:
        self.now += self.step_s


@pytest.mark.parametrize(
    ("limits", "planned", "done", "cuts"),
    [
        # warm-up, timed, profiled steps planned and done; a step takes 1 s
        (Limits(None, None, None), (2, 5, 3), (2, 5, 3), (None, None, None)),
        (Limits(None, 10, None), (2, 5, 3), (2, 5, 3), (None, None, None)),
        (Limits(None, 9, None), (2, 5, 3), (2, 4, 3), (None, "max_steps", None)),
        (Limits(None, 4, None), (2, 5, 3), (0, 1, 3), ("max_steps", "max_steps", None)),
        (Limits(None, 2, None), (2, 5, 3), (0, 0, 2), ("max_steps", "max_steps", "max_steps")),
        (Limits(20, None, None), (2, 5, 3), (2, 5, 3), (None, None, None)),
        # At 4.0 s after the warm-up's 2 and 2 timed steps, 6 s are left, which twice 3 profiled steps may take.
        (Limits(10, None, None), (2, 5, 3), (2, 3, 3), (None, "max_duration_s", None)),
        (Limits(4, None, None), (9, 9, 9), (2, 1, 1), ("max_duration_s", "max_duration_s", "max_duration_s")),
        (Limits(0.5, None, None), (1, 5, 3), (1, 0, 0), (None, "max_duration_s", "max_duration_s")),
    ],
)
def test_bounds_cut_and_leave_time_for_what_comes_after(
    monkeypatch: pytest.MonkeyPatch,
    limits: Limits,
    planned: tuple[int, int, int],
    done: tuple[int, int, int],
    cuts: tuple[str | None, ...],
) -> None:
    clock = FakeTime(1.0)
    monkeypatch.setattr(module, "time", clock)
    loop = Loop(workload(100, clock.step), "cpu", Budget(limits))
    keep = (planned[2] + 1, planned[2], 0)
    parts = [loop.run(count, keep_steps=kept) for count, kept in zip(planned, keep, strict=True)]
    assert tuple(len(part.step_ns) for part in parts) == done
    assert tuple(part.stopped_by for part in parts) == cuts


def test_what_follows_a_step_is_left_out_when_a_bound_cuts_there() -> None:
    calls: list[int] = []
    loop = Loop(workload(9), "cpu", Budget(Limits(None, 3, None)))
    loop.run(5, after=lambda: calls.append(1))
    assert len(calls) == 2
    calls.clear()
    Loop(workload(9), "cpu", Budget(UNBOUNDED)).run(5, after=lambda: calls.append(1))
    assert len(calls) == 5


class FakeEvent:
    """A CUDA event whose time is the number of events before it, in milliseconds."""

    count = 0

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        FakeEvent.count += 1
        self.at = FakeEvent.count**2

    def elapsed_time(self, other: FakeEvent) -> float:
        return float(other.at - self.at)


def test_on_a_gpu_each_step_has_the_time_between_its_own_two_events(monkeypatch: pytest.MonkeyPatch) -> None:
    synchronized: list[int] = []
    monkeypatch.setattr(torch.cuda, "Event", FakeEvent)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: synchronized.append(1))
    FakeEvent.count = 0
    steps = Loop(workload(3), "cuda:0", Budget(UNBOUNDED)).run(3)
    assert steps.device_us() == [3000.0, 7000.0, 11000.0]  # 2²-1², 4²-3², 6²-5² ms
    assert len(synchronized) == 2


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([torch.tensor(1.5), torch.tensor([2.0])], [1.5, 2.0]),
        ([1, 2.5], [1.0, 2.5]),
        ([torch.tensor(1.0), None], None),
        ([torch.zeros(3)], None),
        ([torch.tensor(0.5, dtype=torch.bfloat16, requires_grad=False)], [0.5]),
        ([], None),
    ],
)
def test_losses_are_numbers_or_unknown(losses: list[Any], expected: list[float] | None) -> None:
    results = iter(losses)
    loop = Loop(workload(9, lambda _: next(results)), "cpu", Budget(UNBOUNDED))
    assert loop.run(len(losses)).losses() == expected


def test_a_loss_does_not_keep_its_graph() -> None:
    weight = torch.ones(2, requires_grad=True)
    steps = Loop(workload(2, lambda _: (weight * 2).sum()), "cpu", Budget(UNBOUNDED)).run(2)
    assert all(loss.grad_fn is None for loss in steps._losses)
    assert steps.losses() == [4.0, 4.0]


@pytest.mark.parametrize(
    ("batch", "count"),
    [
        (torch.zeros(5, 2), 5),
        ((torch.zeros(4), torch.zeros(9)), 4),
        ({"ids": [torch.zeros(3)], "mask": torch.zeros(8)}, 3),
        ([["a", "b"], torch.zeros(6)], 6),
        (torch.tensor(1.0), None),
        (["a", b"b"], None),
        (7, None),
    ],
)
def test_samples_are_counted_by_the_first_dimension_or_not_known(batch: Any, count: int | None) -> None:
    assert count_samples(workload(1), batch) == count
    assert count_samples(Workload([], lambda _: None, samples=lambda _: 12), batch) == 12


def test_samples_of_a_series_are_unknown_if_those_of_one_batch_are() -> None:
    batches = [torch.zeros(3), "text", torch.zeros(2)]
    loop = Loop(Workload(batches, lambda _: None), "cpu", Budget(UNBOUNDED))
    assert loop.run(1).samples == 3
    assert loop.run(2).samples is None
    assert Steps().samples == 0
    assert first_tensor("text") is None
