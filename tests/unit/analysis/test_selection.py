"""One step alone: the same figures as beside the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import MemoryEvent, kernel, launch, loading, make_trace, op, step

from tracelock.analysis.analyze import analyze_prepared
from tracelock.analysis.prepared import prepare
from tracelock.analysis.selection import only_step
from tracelock.errors import TracelockError
from tracelock.trace import Trace, read_trace


def three_steps() -> Trace:
    """Each step of 100 ns loads, launches one kernel, and ends 5 ns before its kernel does."""
    host, device, memory = [], [], []
    for number in range(3):
        start = 100 * number
        host += [step(number, start, 100), loading(start, 20), op("aten::mm", start + 40, 30)]
        host += [launch(start + 45, 5, correlation=number + 1)]
        device += [kernel(f"gemm{number}", start + 65, 40, correlation=number + 1)]
        memory += [MemoryEvent(start + 50, 8, 8 * number + 8, 64, 5 + number, device_type=1, device=0)]
    return make_trace(host=host, device=device, memory=memory)


def test_a_step_alone_has_its_own_rows_and_the_window_that_it_has_among_the_others() -> None:
    known = prepare(three_steps())
    whole, alone = analyze_prepared(known), analyze_prepared(only_step(known, 1))
    assert alone.steps == (whole.steps[1],)
    assert [(each.name, each.calls) for each in alone.kernels] == [("gemm1", 1)]
    assert {each.name: each.calls for each in alone.operators} == {
        "aten::mm": 1,
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__": 1,
    }
    assert alone.loading is not None
    assert (alone.loading.calls, alone.loading.wait_us) == (1, 0.02)
    assert alone.memory[0].step_levels == (8, 16)
    assert alone.launches[0].linked == 1


@pytest.mark.parametrize(
    ("number", "expected"), [(7, "step 7 is not in the trace .whole steps are 0, 1, 2."), (-1, "step -1 is not")]
)
def test_a_step_that_is_not_there_is_named_with_those_that_are(number: int, expected: str) -> None:
    with pytest.raises(TracelockError, match=expected):
        only_step(prepare(three_steps()), number)


def test_a_trace_without_steps_says_how_to_mark_them() -> None:
    with pytest.raises(TracelockError, match=r"marks no steps .prof\.step\(\)"):
        only_step(prepare(make_trace(host=[op("aten::mm", 0, 5)])), 0)


@pytest.mark.parametrize("name", ["kineto-resnet50-workers0", "hta-nccl", "tracelens-mi300-resnet-checkpoint"])
def test_steps_alone_add_up_to_all_of_them(shared: Path, name: str) -> None:
    known = prepare(read_trace(shared / "traces" / f"{name}.json.gz"))
    whole = analyze_prepared(known)
    for each in whole.steps:
        if each.complete:
            alone = analyze_prepared(only_step(known, int(each.name.partition("#")[2])))
            assert alone.steps == (each,)
