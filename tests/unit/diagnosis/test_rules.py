"""Each rule on costs made by hand: when it speaks, when it is silent, and what it advises."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from unit.diagnosis.cases import analysis, breakdown, costs, gpu, operator

from tracelock.analysis.costs import Copying, Excess, Pause, Repetition, TraceRow, Updating, Waiting
from tracelock.analysis.model import Analysis, DeviceName, Kernel, KernelOfOperator
from tracelock.analysis.ranks import Rank, Ranks
from tracelock.analysis.sections import Loading, LoadingOperator, Memory, MemoryOwner, Sawtooth
from tracelock.diagnosis import Diagnosed, diagnose

LINE = TraceRow("cudaStreamSynchronize", 10.0, 5.0, "aten::item", "train.py(9): loss")


def on_gpu(step_us: float = 1000.0, device_us: float = 990.0, **known: Any) -> Analysis:
    """Return a trace whose device works `device_us` of each step, with the costs given."""
    parts = breakdown(kernel=device_us, other=step_us - device_us)
    made = costs(step_us, device_us=device_us, **{"host_us": 500.0, "waiting_us": step_us - 500.0, **known})
    return analysis(parts, gpus=(gpu(4 * device_us, 4 * step_us),), costs=made)


def on_cpu(**known: Any) -> Analysis:
    return analysis(breakdown(cpu_op=1000.0), costs=costs(1000.0, **known))


def codes(diagnosed: Diagnosed) -> list[str]:
    return [finding.code for finding in diagnosed.findings]


def wait(kind: str = "synchronization", waiting_us: float = 300.0, **rest: Any) -> Waiting:
    known = {"name": "aten::item", "calls_per_step": 2.0, "host_us": waiting_us, "stall_us": 100.0, "rows": (LINE,)}
    return Waiting(kind=kind, waiting_us=waiting_us, **{**known, **rest})  # type: ignore[arg-type]


def copying(memory: str | None, **rest: Any) -> Copying:
    known: dict[str, Any] = {"kind": "HtoD", "asked": True, "calls_per_step": 2.0, "device_us": 200.0}
    known |= {"exposed_us": 200.0, "host_us": 210.0, "waiting_us": 200.0, "waits": True, "beside_kernels": False}
    return Copying(memory=memory, **{**known, "rows": (LINE,), **rest})


# Waiting for the device.


def test_a_wait_that_leaves_the_device_idle_is_named_with_the_line() -> None:
    found = diagnose(on_gpu(device_us=700.0, host_us=600.0, waiting_us=400.0, waits=(wait(),)))
    main = found.findings[0]
    assert main.code == "synchronization"
    assert main.gain_at_most == pytest.approx(0.3)
    assert "train.py(9): loss" in main.remedies[0].code
    assert main.remedies[0].settings == {}
    assert main.evidence[0].rows == (LINE,)


def test_a_wait_of_a_host_that_is_ahead_costs_nothing() -> None:
    assert codes(diagnose(on_gpu(waits=(wait(waiting_us=490.0),)))) == ["no-bottleneck"]


def test_a_wait_after_which_the_device_has_work_is_no_stall() -> None:
    waits = (wait(stall_us=0.0),)
    assert codes(diagnose(on_gpu(device_us=700.0, host_us=600.0, waiting_us=400.0, waits=waits))) == ["no-bottleneck"]


def test_a_wait_that_costs_only_because_of_the_loader_is_a_symptom() -> None:
    traced = on_gpu(device_us=600.0, host_us=650.0, waiting_us=350.0, loading_us=400.0, waits=(wait(),))
    parts = breakdown(kernel=600.0, dataloader=380.0, other=20.0)
    traced = replace(traced, step=replace(traced.step, breakdown_us=parts, dataloader_share=0.38))
    assert codes(diagnose(traced)) == ["dataloader-bound"]


# Copies.


def test_pageable_copies_ask_for_pinned_memory_and_no_waiting() -> None:
    main = diagnose(on_gpu(host_us=700.0, waiting_us=300.0, copies=(copying("pageable"),))).findings[0]
    assert main.code == "pageable-copies"
    assert main.remedies[0].settings == {"pin_memory": True, "non_blocking": True}


def test_settings_in_force_are_not_proposed_again() -> None:
    traced = on_gpu(host_us=700.0, waiting_us=300.0, copies=(copying("pageable"),))
    main = diagnose(traced, {"pin_memory": True, "non_blocking": True}).findings[0]
    assert [remedy.settings for remedy in main.remedies] == [{}]


def test_copies_whose_memory_is_not_named_are_judged_by_the_setting() -> None:
    traced = on_gpu(device_us=700.0, host_us=700.0, waiting_us=300.0, copies=(copying(None),))
    assert codes(diagnose(traced, {"pin_memory": False}))[0] == "pageable-copies"
    assert codes(diagnose(traced, {"pin_memory": True}))[0] == "blocking-copies"


def test_copies_on_their_own_stream_that_are_waited_for() -> None:
    found = diagnose(on_gpu(host_us=800.0, waiting_us=200.0, copies=(copying("pinned", beside_kernels=True),)))
    assert found.findings[0].code == "blocking-copies"
    assert found.findings[0].remedies[0].settings == {"non_blocking": True}


def test_copies_that_nobody_waits_for_and_nothing_hides() -> None:
    found = diagnose(on_gpu(host_us=500.0, copies=(copying("pinned", waits=False, waiting_us=0.0),)))
    assert found.findings[0].code == "copies-not-overlapped"
    assert all(not remedy.settings for remedy in found.findings[0].remedies)


def test_copies_that_an_operator_makes_of_its_arguments_are_not_the_batches() -> None:
    assert codes(diagnose(on_gpu(host_us=700.0, copies=(copying("pageable", asked=False),)))) == ["no-bottleneck"]


# Launching.


def test_dispatch_longer_than_the_devices_work() -> None:
    found = diagnose(on_gpu(device_us=400.0, host_us=990.0, waiting_us=0.0), {"batch_size": 8})
    main = found.findings[0]
    assert main.code == "launch-bound"
    assert main.gain_estimate == pytest.approx(0.59)  # dispatch beyond the device's work
    assert main.gain_at_most == pytest.approx(0.6)  # no dispatch at all
    assert {"batch_size": 32} in [remedy.settings for remedy in main.remedies]


def test_a_loader_beside_dispatch_that_would_fit_is_the_only_cause() -> None:
    traced = on_gpu(device_us=500.0, host_us=1000.0, waiting_us=0.0, loading_us=500.0)
    parts = breakdown(kernel=500.0, dataloader=480.0, other=20.0)
    traced = replace(traced, step=replace(traced.step, breakdown_us=parts, dataloader_share=0.48))
    assert codes(diagnose(traced)) == ["dataloader-bound"]


@pytest.mark.parametrize(("one_by_one", "code"), [(True, "launch-bound"), (False, "no-bottleneck")])
def test_an_optimizer_that_takes_parameters_one_by_one(one_by_one: bool, code: str) -> None:
    optimizer = Updating(250.0, 300.0, one_by_one, 300.0, 1.0, 300.0)
    found = diagnose(on_gpu(host_us=600.0, optimizer=optimizer))
    assert found.findings[0].code == code
    if one_by_one:
        assert found.findings[0].remedies[0].settings == {"optimizer_fused": True}


def test_the_profilers_overhead_is_not_taken_for_dispatch() -> None:
    traced = on_gpu(device_us=800.0, host_us=1000.0, waiting_us=0.0)
    assert codes(diagnose(traced)) == ["launch-bound"]
    assert codes(diagnose(traced, run={"profiled": {"overhead_ratio": 1.25}})) == ["no-bottleneck"]


# Kernels.


def products(
    tensor_cores: bool | None, device: str = "NVIDIA A100-SXM4-80GB", kernel: str = "ampere_sgemm"
) -> Analysis:
    section = replace(on_gpu().trace, devices=(DeviceName(0, device),))
    kernels = (Kernel(kernel, 8, 3000.0, 375.0, 1.0, 500.0, tensor_cores),)
    called = (KernelOfOperator(kernel, "aten::mm", 8, 3000.0),)
    return replace(on_gpu(), trace=section, kernels=kernels, kernels_by_operator=called)


def test_single_precision_on_a_device_with_tensor_cores() -> None:
    found = diagnose(products(False), {"matmul_precision": "highest", "amp": "off"})
    assert found.findings[0].code == "matmul-precision"
    assert [remedy.settings for remedy in found.findings[0].remedies] == [{"matmul_precision": "high"}, {"amp": "bf16"}]


def test_volta_has_no_tf32() -> None:
    found = diagnose(products(False, "Tesla V100-SXM2-32GB"))
    assert [remedy.settings for remedy in found.findings[0].remedies] == [{"amp": "fp16"}]


@pytest.mark.parametrize(("cores", "device"), [(True, "NVIDIA H100"), (None, "NVIDIA H100"), (False, "Tesla P100")])
def test_no_word_of_precision_where_it_is_used_unknown_or_impossible(cores: bool | None, device: str) -> None:
    assert codes(diagnose(products(cores, device))) == ["no-bottleneck"]


def test_kernels_that_turn_layouts_are_no_products_without_tensor_cores() -> None:
    found = diagnose(products(False, kernel="void cudnn::ops::nchwToNhwcKernel<__half>"), {"channels_last": False})
    assert codes(found) == ["memory-layout"]
    assert found.findings[0].remedies[0].settings == {"channels_last": True}


# Memory.


def device_memory(levels: tuple[int, ...], **rest: Any) -> Memory:
    return Memory("cuda:0", max(levels), None, 1.0, step_levels=levels, **rest)


MIB = 2**20


@pytest.mark.parametrize(
    ("levels", "named"),
    [
        ((0, 50, 51, 52, 53, 54, 55), True),  # the first step makes buffers that stay; each later one keeps a MiB
        ((0, 50, 50, 50, 50, 50, 50), False),  # normal growth at the start
        ((0, 50, 60, 65, 66, 66, 66), False),  # it settles
        ((0, 50, 51, 50, 51, 50, 51), False),  # up and down
        ((0, 50, 51, 52), False),  # too few steps to tell
        ((0, 50, 50, 50, 50, 50, 80), False),  # once
    ],
)
def test_a_leak_is_told_from_growth_at_the_start(levels: tuple[int, ...], named: bool) -> None:
    owners = (MemoryOwner("aten::clone", 6, 6 * MIB, 6 * MIB, 6), MemoryOwner("aten::mm", 6, 9 * MIB, 9 * MIB, 1))
    traced = replace(on_gpu(), memory=(device_memory(tuple(level * MIB for level in levels), owners=owners),))
    found = diagnose(traced)
    assert (codes(found) == ["memory-growth"]) is named
    if named:
        assert "1.00 MiB a step, by aten::clone" in found.findings[0].title
        assert found.findings[0].gain_at_most is None


def test_many_small_allocations_that_are_freed_at_once() -> None:
    teeth = Sawtooth(900.0, 890.0, 800.0, 2048.0, 1.0)
    owners = (MemoryOwner("aten::add", 3200, 1, None, None),)
    traced = replace(on_cpu(), memory=(device_memory((1, 1), sawtooth=teeth, owners=owners),))
    traced = replace(traced, operators=(operator("aten::add", 3200, 1200.0),))
    main = diagnose(traced).findings[0]
    assert (main.code, main.gain_at_most) == ("memory-sawtooth", pytest.approx(0.3))


def test_the_drivers_allocator_explains_the_waits_it_makes() -> None:
    waits = (wait("allocation", 200.0, name="aten::empty", host_us=400.0), wait(waiting_us=200.0))
    found = diagnose(on_gpu(device_us=600.0, host_us=700.0, waiting_us=300.0, waits=waits), {"batch_size": 64})
    assert codes(found) == ["memory-pressure"]
    assert found.findings[0].remedies[0].settings == {"batch_size": 32}


# Operators.


def repetition(**rest: Any) -> Repetition:
    known: dict[str, Any] = {"name": "aten::stack", "calls_per_step": 300.0, "mean_us": 1.0, "host_us": 300.0}
    known |= {"device_us": 0.0, "in_loader": False, "in_optimizer": False, "rows": (LINE,)}
    return Repetition(**{**known, **rest})


def test_a_small_operator_in_a_loop() -> None:
    main = diagnose(on_cpu(repetitions=(repetition(),))).findings[0]
    assert (main.code, main.gain_at_most) == ("frequent-operator", pytest.approx(0.3))
    assert "train.py(9): loss" in main.remedies[0].code


@pytest.mark.parametrize(
    "silent",
    [
        {"calls_per_step": 30.0},
        {"mean_us": 500.0},
        {"in_optimizer": True},
        {"host_us": 10.0},
        {"name": "autograd::engine::evaluate_function: AddBackward0"},
    ],
)
def test_loops_that_are_none_of_the_users_or_cost_nothing(silent: dict[str, Any]) -> None:
    assert codes(diagnose(on_cpu(repetitions=(repetition(**silent),)))) == ["no-bottleneck"]


@pytest.mark.parametrize(
    ("name", "calls", "code"),
    [
        ("aten::sort", 4, "dominant-operator"),
        ("MyLoss", 8, "dominant-operator"),
        ("aten::sort", 400, "no-bottleneck"),
        ("aten::addmm", 4, "no-bottleneck"),
        ("aten::cudnn_convolution", 4, "no-bottleneck"),
    ],
)
def test_one_operator_that_is_no_product_takes_the_step(name: str, calls: int, code: str) -> None:
    assert diagnose(replace(on_cpu(), operators=(operator(name, calls, 1200.0),))).findings[0].code == code


def test_a_batch_put_together_piece_by_piece() -> None:
    operators = (LoadingOperator("aten::select", 80_000, 40_000.0), LoadingOperator("aten::stack", 1000, 20_000.0))
    loading = Loading("main process", (), 4, 90_000.0, 0.9, (), operators, 30_000.0)
    parts = breakdown(dataloader=22_500.0, cpu_op=2_500.0)
    traced = replace(analysis(parts, costs=costs(25_000.0, loading_us=22_500.0)), loading=loading)
    found = diagnose(traced, {"num_workers": 0})
    assert codes(found) == ["slow-collate"]
    assert "250 calls of aten::stack" in found.findings[0].title
    assert {"num_workers": 4, "persistent_workers": True} in [each.settings for each in found.findings[0].remedies]


# Pauses, epochs.


def test_pauses_are_named_with_the_users_line() -> None:
    row = TraceRow("(nothing recorded)", 0.0, 500.0, None, "train.py(90): save")
    main = diagnose(on_cpu(pauses=(Pause("train.py(90): save", 2, 250.0, (row,)),))).findings[0]
    assert (main.code, main.gain_estimate) == ("step-gaps", pytest.approx(0.25))
    assert main.gain_at_most == pytest.approx(0.25 * 1.25)  # two pauses in four steps may be half of one more
    assert "train.py(90): save" in main.title


@pytest.mark.parametrize(("work", "code"), [(2.0, "step-gaps"), (1.0, "no-bottleneck"), (None, "no-bottleneck")])
def test_long_steps_count_when_they_do_more(work: float | None, code: str) -> None:
    assert codes(diagnose(on_cpu(excess=Excess(2, 300.0, 0.0, work, ())))) == [code]


def test_the_start_of_workers_explains_the_loading() -> None:
    loading_us = [400_000.0 if step % 8 == 0 else 100.0 for step in range(24)]
    timed = {"step_us": [1000.0 + wait for wait in loading_us], "loading_us": loading_us, "epoch_starts": [0, 8, 16]}
    run = {"settings": {"num_workers": 2, "persistent_workers": False}, "timed": timed}
    traced = analysis(breakdown(dataloader=600.0, cpu_op=400.0))
    main, *rest = diagnose(traced, run=run).findings
    assert (main.code, rest) == ("worker-startup", [])
    assert main.remedies[0].settings == {"persistent_workers": True}
    assert codes(diagnose(traced, {"num_workers": 2, "persistent_workers": True}, run)) == ["dataloader-bound"]


# Threads and clocks.


@pytest.mark.parametrize(
    ("threads", "code"), [(1, "few-threads"), (4, "no-bottleneck"), (16, "oversubscription"), (None, "no-bottleneck")]
)
def test_threads_are_held_against_cores(threads: int | None, code: str) -> None:
    traced = replace(on_cpu(operators_us=950.0), operators=(operator("aten::addmm", 4, 3600.0),))
    found = diagnose(traced, run={"threads": threads, "cores": 4})
    assert codes(found) == [code]
    if threads in (1, 16):
        assert found.findings[0].remedies[0].settings == {"threads": 4}


def test_a_clock_that_is_held_down() -> None:
    samples = {"gpu_sm_clock_mhz": [1400.0, *[1000.0] * 9], "gpu_throttle": ["", *["software_thermal"] * 9]}
    main = diagnose(on_gpu(), samples=samples).findings[0]
    assert main.code == "throttling"
    assert main.gain_at_most == pytest.approx((1 - 1000 / 1400) * 0.99)
    idle = {**samples, "gpu_throttle": ["idle"] * 10}
    assert codes(diagnose(on_gpu(), samples=idle)) == ["no-bottleneck"]


# Ranks.


def ranks(caused: tuple[float, ...], last: tuple[int, ...], straggler: int | None) -> Ranks:
    total = sum(caused)
    rows = tuple(
        Rank(rank, f"rank{rank}", 1000.0, None, None, None, None, total - each, each, last[rank], None, None)
        for rank, each in enumerate(caused)
    )
    share = None if straggler is None else caused[straggler] / total
    return Ranks(rows, len(rows), (), 10, 0, "collectives", straggler, share, 0.2)


def test_one_rank_that_is_always_last_is_a_straggler() -> None:
    main = diagnose(on_gpu(), ranks=ranks((0.0, 0.0, 800.0), (0, 1, 9), 2)).findings[0]
    assert (main.code, main.gain_at_most) == ("straggling-rank", pytest.approx(0.2))
    assert "Rank 2" in main.title


def test_a_rank_that_is_last_now_and_then_is_none() -> None:
    assert diagnose(on_gpu(), ranks=ranks((200.0, 100.0, 500.0), (3, 2, 5), 2)).findings[0].code == "rank-imbalance"


def test_even_ranks_are_not_mentioned() -> None:
    assert codes(diagnose(on_gpu(), ranks=ranks((20.0, 10.0, 10.0), (3, 3, 4), None))) == ["no-bottleneck"]


def test_exposed_communication() -> None:
    traced = replace(on_gpu(), gpus=(replace(gpu(3960.0, 4000.0), exposed_communication_us=1200.0),))
    found = diagnose(traced, {"batch_size": 16})
    assert (found.findings[0].code, found.findings[0].gain_at_most) == ("communication-exposed", pytest.approx(0.3))
    assert found.findings[0].remedies[0].settings == {"batch_size": 32}


def test_order_is_by_what_can_be_gained() -> None:
    pause = Pause(None, 4, 150.0, ())
    found = diagnose(on_cpu(repetitions=(repetition(),), pauses=(pause,)))
    assert codes(found) == ["frequent-operator", "step-gaps"]
    gains = [finding.gain_at_most for finding in found.findings]
    assert gains == sorted(gains, reverse=True)  # type: ignore[type-var]
