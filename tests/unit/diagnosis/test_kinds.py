"""Kinds of cases that look like another cause: each on a case of its own, made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from unit.diagnosis.cases import analysis, breakdown, costs, gpu

from tracelock.analysis.costs import Copying, Excess, Gaps, Hitch, Pause, TraceRow, Waiting
from tracelock.analysis.model import Analysis
from tracelock.analysis.sections import Loading, LoadingOperator, LoadingWait
from tracelock.diagnosis import Diagnosed, diagnose
from tracelock.diagnosis.rules.python_time import called

ROW = TraceRow("(nothing recorded)", 10.0, 96_000.0, None, None)


def traced(step_us: float, device_us: float | None, **known: Any) -> Analysis:
    """Return a trace of eight steps, on a device where `device_us` is given."""
    worked = device_us or step_us
    parts = breakdown(**{"kernel" if device_us else "cpu_op": worked, "other": step_us - worked})
    gpus = (gpu(8 * worked, 8 * step_us),) if device_us else ()
    loading = known.pop("loading", None)
    found = analysis(parts, steps=8, gpus=gpus, costs=costs(step_us, device_us=device_us, **known))
    share = found.costs.loading_us / step_us if found.costs else None
    return replace(found, loading=loading, step=replace(found.step, dataloader_share=share))


def codes(diagnosed: Diagnosed) -> list[str]:
    return [finding.code for finding in diagnosed.findings]


def advice(diagnosed: Diagnosed) -> str:
    return " ".join(remedy.code for finding in diagnosed.findings for remedy in finding.remedies)


def waited(*waits_us: float, mode: str = "workers", operators: tuple[LoadingOperator, ...] = ()) -> Loading:
    kinds = {"workers": "_MultiProcessingDataLoaderIter", "main process": "_SingleProcessDataLoaderIter"}
    rows = tuple(LoadingWait(f"ProfilerStep#{number}", 1, wait) for number, wait in enumerate(waits_us))
    whole = sum(waits_us)
    return Loading(mode, (kinds[mode],), len(waits_us), whole, None, rows, operators, 0.0)


# A finding that explains a third of a time, and two causes as large.


def three_at_once(pieces_us: float) -> Analysis:
    """Return 158 ms of dispatch and 52 ms of loading, of which small operators take a part; the device works 103 ms."""
    small = LoadingOperator("aten::stack", 12_480, 8 * pieces_us)
    loading = waited(*[52_000.0] * 8, mode="main process", operators=(small,))
    return traced(208_000.0, 103_000.0, host_us=208_000.0, loading_us=52_000.0, loading=loading)


def test_what_explains_a_part_of_a_time_does_not_hide_the_whole() -> None:
    found = diagnose(three_at_once(0.31 * 52_000.0))
    assert set(codes(found)) == {"launch-bound", "dataloader-bound"}
    loader = next(each for each in found.findings if each.code == "dataloader-bound")
    assert loader.gain_at_most == pytest.approx(52 / 208)
    assert any(fact.text.startswith("partly: ") for fact in loader.evidence)
    assert {"num_workers": 4, "persistent_workers": True, "pin_memory": True} in [r.settings for r in loader.remedies]


def test_two_causes_within_each_others_uncertainty_both_lead() -> None:
    found = diagnose(three_at_once(0.0))
    assert found.verdict.startswith("Causes that cost about the same lead: ")
    assert all(finding.title in found.verdict for finding in found.findings)


def test_a_collate_that_is_most_of_the_loading_stands_for_it() -> None:
    found = diagnose(three_at_once(0.9 * 52_000.0))
    assert "slow-collate" in codes(found)
    assert "dataloader-bound" not in codes(found)
    collate = next(each for each in found.findings if each.code == "slow-collate")
    assert collate.gain_at_most == pytest.approx(52 / 208)  # the Python between the pieces goes with them


def test_bounds_hold_against_all_remedies_together() -> None:
    bounds = {each.code: each.gain_at_most or 0.0 for each in diagnose(three_at_once(0.31 * 52_000.0)).findings}
    assert sum(bounds.values()) >= 1 - 103 / 208
    assert bounds["dataloader-bound"] >= 1 - 173 / 208  # measured with four workers


# What is told of small operators in the loader.


def small_operators(**calls: int) -> Diagnosed:
    """Return what is said of eight batches, of which operators of 10 µs make each by so many calls."""
    found = tuple(LoadingOperator(f"aten::{name}", 8 * each, 80.0 * each) for name, each in calls.items())
    loading = waited(*[12_000.0] * 8, mode="main process", operators=found)
    return diagnose(traced(20_000.0, None, loading_us=12_000.0, loading=loading))


@pytest.mark.parametrize("fields", [1, 2, 8])
def test_one_stack_for_each_tensor_of_a_sample_is_what_is_advised(fields: int) -> None:
    found = small_operators(full=640, empty=700, stack=fields, cat=fields)
    assert codes(found) == ["dataloader-bound"]
    assert not any("torch.stack" in (remedy.code or "") for remedy in found.findings[0].remedies)


@pytest.mark.parametrize("name", ["stack", "cat"])
def test_hundreds_of_pieces_are_told_as_such(name: str) -> None:
    main = small_operators(select=640, **{name: 100}).findings[0]
    assert f"piece by piece: 100 calls of aten::{name}" in main.title


@pytest.mark.parametrize("device_us", [None, 100_000.0])
def test_a_device_is_spoken_of_where_there_is_one(device_us: float | None) -> None:
    loading = waited(*[52_000.0] * 8, mode="main process")
    found = diagnose(traced(208_000.0, device_us, host_us=208_000.0, loading_us=52_000.0, loading=loading))
    loader = next(each for each in found.findings if each.code == "dataloader-bound")
    assert any("device" in fact.text for fact in loader.evidence) == (device_us is not None)


# Workers that start anew, told from one trace.


def restarted(mode: str = "workers", first_us: float = 70_000.0) -> Analysis:
    """Return steps of which every other has 96 ms with nothing recorded and then a long wait for its batch."""
    pause = Pause(None, 4, 48_000.0, (ROW,), before_loading=True, without_worst_us=41_000.0)
    loading = waited(*[first_us, 3_000.0] * 4, mode=mode)
    mean = (first_us + 3_000.0) / 2
    excess = Excess(4, 80_000.0, 33_500.0, 1.0, (), 30_000.0)
    return traced(140_000.0, None, loading_us=mean, pauses=(pause,), excess=excess, loading=loading)


def test_restarted_workers_are_one_finding_of_both_parts() -> None:
    found = diagnose(restarted())
    assert codes(found) == ["worker-startup"]
    assert found.findings[0].gain_at_most == pytest.approx((48_000 + 33_500) / 140_000)
    assert found.findings[0].remedies[0].settings == {"persistent_workers": True}


@pytest.mark.parametrize(("mode", "first_us"), [("main process", 70_000.0), ("workers", 6_000.0)])
def test_a_pause_before_a_batch_alone_is_no_start_of_workers(mode: str, first_us: float) -> None:
    assert "worker-startup" not in codes(diagnose(restarted(mode, first_us)))
    assert "step-gaps" in codes(diagnose(restarted(mode, first_us)))


# Gaps: what is not known is said to be unknown, and how to know it.


def gap(code: str | None = None, steps: int = 8, us: float = 60_000.0) -> Pause:
    return Pause(
        code, steps, us, (replace(ROW, code=code),), without_worst_us=us * (steps - 1) / 7 if steps < 8 else us
    )


def test_a_gap_in_every_step_is_not_told_as_the_shortest_steps() -> None:
    found = diagnose(traced(100_000.0, None, pauses=(gap(),)))
    (only,) = found.findings
    assert (only.code, only.gain_at_most) == ("step-gaps", pytest.approx(0.6))
    assert "in every step" in only.title
    assert "shortest" not in only.remedies[0].expect
    assert "with_stack" in only.remedies[0].code


def test_advice_on_checkpoints_and_logging_needs_evidence_of_one() -> None:
    unknown = advice(diagnose(traced(100_000.0, None, pauses=(gap(),))))
    assert "save" not in unknown
    assert "log" not in unknown
    known = advice(diagnose(traced(100_000.0, None, pauses=(gap("train.py(9): save"),))))
    assert "train.py(9): save" in known
    assert "save from a copy" in known


@pytest.mark.parametrize("us", [1_750.0, 37_750.0])
def test_one_disturbance_is_no_cause(us: float) -> None:
    once = traced(100_000.0, None, pauses=(gap(steps=1, us=us / 100_000.0 * 100_000.0 * 4),))
    assert codes(diagnose(once)) == ["no-bottleneck"]


def test_one_gap_that_the_timed_steps_show_again_recurs() -> None:
    once = traced(100_000.0, None, pauses=(gap(steps=1, us=20_000.0),))
    plain = [90_000.0] * 24
    assert codes(diagnose(once, run={"timed": {"step_us": plain}})) == ["no-bottleneck"]
    often = [90_000.0, 90_000.0, 90_000.0, 250_000.0] * 6
    assert codes(diagnose(once, run={"timed": {"step_us": often}})) == ["step-gaps"]


def test_one_long_step_that_does_more_is_no_cause() -> None:
    excess = Excess(1, 30_000.0, 0.0, 2.0, (), 0.0)
    assert codes(diagnose(traced(100_000.0, None, excess=excess))) == ["no-bottleneck"]


# What is no dispatch: waiting calls and calls that are stuck.


def test_a_waiting_copy_is_synchronisation_and_not_dispatch() -> None:
    wait = Waiting("copy", "aten::to", 1.0, 150_000.0, 86_000.0, 0.0, ())
    copy = Copying("HtoD", "pageable", True, 1.0, 300.0, 300.0, 150_000.0, 86_000.0, True, False, ())
    known: dict[str, Any] = {"waits": (wait,), "copies": (copy,), "host_us": 122_000.0, "waiting_us": 86_000.0}
    found = diagnose(traced(208_000.0, 144_000.0, **known))
    assert codes(found)[0] == "synchronization"
    assert "launch-bound" not in codes(found)
    assert "aten::to" in found.findings[0].title


def test_a_few_long_stalls_are_named_by_their_calls_and_are_no_dispatch() -> None:
    stuck = tuple(
        Hitch(name, 8, 1.4, 12.0, 55_000.0, 54_000.0, ()) for name in ("aten::mm", "aten::empty", "cudaEventRecord")
    )
    gaps = Gaps(690.0, 170_000.0, 5_000.0, 300.0)
    known: dict[str, Any] = {"host_us": 540_000.0, "hitches": stuck, "gaps": gaps}
    found = diagnose(traced(540_000.0, 370_000.0, **known))
    assert codes(found) == ["host-stalls"]
    assert all(name in found.findings[0].title for name in ("aten::mm", "aten::empty", "cudaEventRecord"))
    assert "graph" not in advice(found)


def test_a_single_stall_of_the_machine_is_no_cause() -> None:
    stuck = (Hitch("aten::mm", 1, 0.1, 12.0, 60_000.0, 0.0, ()),)
    gaps = Gaps(690.0, 60_000.0, 0.0, 300.0)
    found = diagnose(traced(540_000.0, 480_000.0, host_us=540_000.0, hitches=stuck, gaps=gaps))
    assert codes(found) == ["no-bottleneck"]


def test_many_gaps_of_a_launchs_length_are_dispatch() -> None:
    gaps = Gaps(690.0, 170_000.0, 165_000.0, 300.0)
    found = diagnose(traced(540_000.0, 370_000.0, host_us=540_000.0, gaps=gaps))
    assert codes(found) == ["launch-bound"]
    assert any("gaps a step" in fact.text for fact in found.findings[0].evidence)


@pytest.mark.parametrize(
    ("frame", "told"),
    [
        ("<built-in method full of type object at 0x7fb5da2cea40>", "<built-in method full>"),
        ("<built-in method acquire of _thread.lock object at 0x7f00>", "<built-in method acquire>"),
        ("<built-in function sleep>", "<built-in function sleep>"),
        ("train.py(12): collate", "train.py(12): collate"),
    ],
)
def test_addresses_of_objects_are_no_part_of_what_is_told(frame: str, told: str) -> None:
    assert called(frame) == told
