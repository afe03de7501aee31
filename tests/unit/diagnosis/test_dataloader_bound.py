"""Loading as the cause: when it is named, and which remedies depend on what is in force."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from unit.diagnosis.cases import analysis, breakdown, gpu, operator

from tracelock.analysis.model import Analysis
from tracelock.analysis.sections import Loading, LoadingWait
from tracelock.diagnosis import Diagnosed, Thresholds, diagnose

SINGLE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
MULTI = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def on_cpu(loading_us: float, iterator: str = SINGLE) -> Analysis:
    parts = breakdown(dataloader=loading_us, cpu_op=1000.0 - loading_us)
    return analysis(parts, operators=(operator(iterator, 4, 4 * loading_us),))


def proposed(diagnosed: Diagnosed) -> list[dict[str, Any]]:
    return [remedy.settings for remedy in diagnosed.findings[0].remedies if remedy.settings]


def test_names_loading_with_its_share_as_bound_of_the_gain() -> None:
    diagnosed = diagnose(on_cpu(400.0))
    main = diagnosed.findings[0]
    assert (main.code, main.severity, main.confidence) == ("dataloader-bound", "critical", "high")
    assert main.share_of_step == pytest.approx(0.4)
    assert main.gain_at_most == pytest.approx(0.4, rel=1e-3)
    assert "400 µs of 1,000 µs" in main.evidence[0].text
    assert diagnosed.verdict.endswith("removing it saves at most 40% of the step.")


@pytest.mark.parametrize(("share", "code"), [(49.0, "no-bottleneck"), (50.0, "dataloader-bound")])
def test_speaks_from_its_threshold_on(share: float, code: str) -> None:
    assert diagnose(on_cpu(share)).findings[0].code == code


def test_threshold_is_configuration() -> None:
    assert diagnose(on_cpu(400.0), thresholds=Thresholds(dataloader_share=0.5)).findings[0].code == "no-bottleneck"


def test_main_process_loading_asks_for_workers() -> None:
    assert proposed(diagnose(on_cpu(400.0))) == [{"num_workers": 4, "persistent_workers": True}]


def test_pinned_memory_is_proposed_only_where_a_gpu_is_and_it_is_not_in_force() -> None:
    parts = breakdown(dataloader=400.0, kernel=600.0)
    traced = analysis(parts, operators=(operator(SINGLE, 4, 1600.0),), gpus=(gpu(2400.0, 4000.0, dataloader=1600.0),))
    assert proposed(diagnose(traced)) == [{"num_workers": 4, "persistent_workers": True, "pin_memory": True}]
    in_force = {"num_workers": 0, "pin_memory": True}
    assert "pin_memory" not in proposed(diagnose(traced, in_force))[0]


def test_slow_workers_get_other_advice() -> None:
    in_force = {"num_workers": 2, "persistent_workers": False, "prefetch_factor": 2}
    changes = proposed(diagnose(on_cpu(400.0, MULTI), in_force))
    assert changes == [{"num_workers": 4}, {"prefetch_factor": 4}, {"persistent_workers": True}]


def test_the_row_of_the_iterator_decides_over_the_settings() -> None:
    assert proposed(diagnose(on_cpu(400.0, MULTI), {"num_workers": 0}))[0] == {"num_workers": 8}


def test_settings_of_the_run_are_in_force_where_none_are_given() -> None:
    diagnosed = diagnose(on_cpu(400.0), run={"settings": {"num_workers": 0, "batch_size": 8}})
    assert diagnosed.settings == {"num_workers": 0, "batch_size": 8}


@pytest.mark.parametrize("wait_us", [2_000.0, 5_000.0])
def test_what_the_profiler_hides_of_slow_workers_is_in_the_bound(wait_us: float) -> None:
    """Workers that give a step of 10 ms its length do so without the profiler, which took 3 ms of the rest."""
    waits = tuple(LoadingWait(f"ProfilerStep#{number}", 1, wait_us) for number in range(8))
    loading = Loading("workers", (MULTI,), 8, 8 * wait_us, None, waits, (), 0.0)
    made = analysis(breakdown(dataloader=wait_us, cpu_op=10_000.0 - wait_us), steps=8, loading=loading)
    made = replace(made, trace=replace(made.trace, events=8 * 3_000))
    found = diagnose(made).findings[0]
    assert found.code == "dataloader-bound"
    assert found.gain_at_most >= (wait_us + 3_000.0) / 10_000.0 - 1e-9
