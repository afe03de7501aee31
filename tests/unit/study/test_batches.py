"""Runs in batches, what is asked of a cluster, and the comments by which jobs are found again."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracelock.errors import TracelockError
from tracelock.study.batches import cut
from tracelock.study.cluster import Cluster, cluster_of, minutes_of
from tracelock.study.plan import interleave


@given(
    environments=st.integers(1, 2),
    variants=st.integers(1, 30),
    repeats=st.integers(1, 12),
    most=st.integers(1, 60),
    seed=st.integers(0, 5),
)
def test_every_run_is_in_one_batch_in_the_plans_order(
    environments: int, variants: int, repeats: int, most: int, seed: int
) -> None:
    names = tuple(f"e{number}" for number in range(environments))
    runs = interleave(names, [f"v{number}" for number in range(variants)], repeats, seed)
    batches = cut(runs, most)
    assert sorted((run for batch in batches for run in batch.runs), key=lambda run: run.order) == list(runs)
    assert all(len(batch.runs) <= most for batch in batches)
    assert all({run.environment for run in batch.runs} == {batch.environment} for batch in batches)
    assert all([run.order for run in batch.runs] == sorted(run.order for run in batch.runs) for batch in batches)
    if variants <= most:  # whole rounds: each repeat of a batch holds every variant
        for batch in batches:
            repeats_there = {run.repeat for run in batch.runs}
            assert len(batch.runs) == variants * len(repeats_there)


def test_the_places_of_a_batch_are_its_own_within_its_environment() -> None:
    runs = interleave(("a", "b"), ["x", "y"], 3, 1)
    for batch in cut(runs, 4):
        first, last = map(int, batch.orders.split("-"))
        picked = [run for run in runs if run.environment == batch.environment and first <= run.order <= last]
        assert picked == list(batch.runs)


def test_ten_thousand_runs_are_about_two_hundred_jobs() -> None:
    runs = interleave(("a",), [f"v{number}" for number in range(40)], 250, 1)
    assert len(cut(runs, 48)) == 250  # one round of 40 fits a job of 48, two do not
    assert len(cut(runs, 80)) == 125


def test_a_study_asks_for_a_gpu_unless_it_runs_on_the_cpu() -> None:
    assert Cluster(gpu_model="a100").resources("auto") == {
        "gpu": 1,
        "gpu_model": "a100",
        "slurm_extra": "--exclusive",
    }
    assert Cluster(gpu_model="a100", share="node").resources("cpu") == {}
    assert Cluster(gpus=4, partition="p", account="a", qos="q", share="node").resources("cuda") == {
        "slurm_partition": "p",
        "slurm_account": "a",
        "qos": "q",
        "gpu": 4,
    }


def test_options_of_a_site_stay_words_of_their_own() -> None:
    assert Cluster(extra="--mail-user 'a b' --x=$(y)").sbatch_options() == "--exclusive --mail-user 'a b' '--x=$(y)'"


def test_a_study_wins_over_its_site_key_by_key(tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text("partition: gpu\ncpus: 8\n")
    found = cluster_of({"cpus": 2}, str(site))
    assert (found.partition, found.cpus, found.mem_mb) == ("gpu", 2, 8000)


def test_everything_wrong_with_a_site_is_told_at_once(tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text("partitoin: gpu\nmem_mb: 10\nshare: all\n")
    with pytest.raises(TracelockError) as caught:
        cluster_of({}, str(site))
    lines = "\n".join(map(str, caught.value.problems))
    assert "did you mean 'partition'?" in lines
    assert "site.yaml:2: mem_mb: is 10, expected at least 500" in lines
    assert "expected one of nothing, node" in lines


def test_a_job_may_take_what_its_runs_may_take() -> None:
    assert minutes_of(48, 300) == 48 * 7 + 5
