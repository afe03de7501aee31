"""Studies on a real SLURM: what clusters do to jobs, nodes and drivers, and what must hold after each of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from slurm.conftest import Sweep
from slurm.single_host import NODES, SingleHost, call

pytestmark = [pytest.mark.workflow, pytest.mark.slow, pytest.mark.xdist_group("slurm")]

Make = Callable[..., Sweep]


def check(study: Sweep, planned: int) -> list[dict]:
    """Assert that a study is complete: exactly its planned runs, each whole, made by one job, nothing left over."""
    runs = [json.loads(path.read_text()) for path in study.runs()]
    wanted = [(run["variant"], run["repeat"]) for run in json.loads((study.results / "plan.json").read_text())["runs"]]
    assert len(wanted) == planned
    assert Counter((run["variant"], run["repeat"]) for run in runs) == Counter(wanted)
    assert all(f".{run['cluster']['id']}." in run["token"] for run in runs)
    assert all(run["cluster"]["node"] in NODES for run in runs)
    assert all((path.parent / run["profiled"]["trace"]).is_file() for path, run in zip(study.runs(), runs, strict=True))
    assert not list(study.results.glob("runs/*/*/*/.attempt-*"))
    assert not study.jobs()
    assert (study.results / "report.html").is_file()
    comparison = json.loads((study.results / "comparison.json").read_text())
    assert not comparison["missing"]
    assert not comparison["excluded"]
    return runs


def test_a_sweep_of_24_runs_takes_three_jobs(sweep: Make) -> None:
    study = sweep(sizes="[1, 2, 3, 4]", repeats=6, runs_per_job=8)
    study.finish(study.start(), 400)
    runs = check(study, 24)
    jobs = Counter(run["cluster"]["id"] for run in runs)
    assert list(jobs.values()) == [8, 8, 8]
    for job in jobs:  # whole rounds share a node: what is compared was measured side by side
        own = [run for run in runs if run["cluster"]["id"] == job]
        assert len({run["cluster"]["node"] for run in own}) == 1
        assert set(Counter(run["variant"] for run in own).values()) == {2}


def test_a_job_out_of_memory_is_tried_again_with_more(sweep: Make) -> None:
    study = sweep(hold_mb=1500, mem_mb=1400, sizes="[1]", pause_s=6)
    study.finish(study.start())
    runs = check(study, 2)
    done = json.loads(next(study.results.glob("batches/default/*.done.json")).read_text())
    assert done["attempt"] > 1
    assert {run["cluster"]["id"] for run in runs} == {done["job"]["id"]}


def test_a_job_over_its_time_is_tried_again_with_more_and_the_cause_is_told(sweep: Make) -> None:
    study = sweep(pause_s=12, runs_per_job=4)
    driver = study.start()
    study.until(study.runs)
    made = {path: path.read_bytes() for path in study.runs()[:1]}
    (first,) = study.jobs("RUNNING")
    asked = call("squeue", "-h", "-o", "%l", "-j", first)
    call("scontrol", "update", f"jobid={first}", "endtime=now+1")  # SLURM looks at its clock every half minute
    study.until(lambda: first not in study.jobs("RUNNING"), 60)
    study.until(lambda: study.jobs("RUNNING"), 60)
    (second,) = study.jobs("RUNNING")
    assert minutes(call("squeue", "-h", "-o", "%l", "-j", second)) == 2 * minutes(asked)
    assert f"job {first} failed (TIMEOUT: it was over its time limit)" in study.finish(driver)
    runs = check(study, 4)
    assert {run["cluster"]["id"] for run in runs} == {first, second}
    assert all(path.read_bytes() == content for path, content in made.items())


def minutes(limit: str) -> int:
    """Return the minutes of SLURM's HH:MM:SS or MM:SS."""
    parts = [int(part) for part in limit.split(":")]
    return (60 * parts[0] if len(parts) == 3 else 0) + parts[-2]


def test_a_cancelled_job_is_started_again_and_keeps_its_finished_runs(sweep: Make) -> None:
    study = sweep(pause_s=3, runs_per_job=4)
    driver = study.start()
    study.until(study.runs)
    first = study.runs()[0]
    made = first.read_bytes()
    call("scancel", *study.jobs())
    study.finish(driver)
    check(study, 4)
    assert first.read_bytes() == made


def test_an_interrupted_driver_leaves_no_job_and_the_next_start_goes_on(sweep: Make) -> None:
    study = sweep(pause_s=3, runs_per_job=4)
    driver = study.start()
    study.until(study.runs)
    made = {path: path.read_bytes() for path in study.runs()[:1]}
    os.killpg(driver.pid, signal.SIGINT)
    assert driver.wait(60) != 0
    study.until(lambda: not study.jobs(), 30)
    study.finish(study.start())
    check(study, 4)
    assert all(path.read_bytes() == content for path, content in made.items())


def test_a_killed_driver_is_followed_by_one_that_ends_its_jobs(sweep: Make) -> None:
    study = sweep(pause_s=4, runs_per_job=4)
    driver = study.start()
    study.until(study.runs)
    former = study.jobs("RUNNING")
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    assert study.jobs() == former  # they go on without a driver
    study.finish(study.start())
    runs = check(study, 4)
    assert any(run["cluster"]["id"] not in former for run in runs)


def test_a_second_driver_measures_nothing_twice(sweep: Make) -> None:
    study = sweep(pause_s=2, runs_per_job=4)
    first = study.start()
    study.until(lambda: study.jobs("RUNNING"))
    second = study.start()
    study.until(lambda: second.poll() is not None or first.poll() is not None, 240)
    study.finish(first)
    second.wait(240)
    runs = check(study, 4)
    assert len({run["cluster"]["id"] for run in runs}) == 1


def test_a_node_whose_daemon_dies_is_left_and_its_orphan_publishes_nothing_more(sweep: Make, slurm: SingleHost) -> None:
    study = sweep(pause_s=4, runs_per_job=4)
    driver = study.start()
    study.until(study.runs)
    node = call("squeue", "-h", "-o", "%N", "-j", study.jobs("RUNNING")[0])
    slurm.stop(f"slurmd.{node}", signal.SIGKILL)
    try:
        study.finish(driver)
        runs = check(study, 4)
        assert len({run["cluster"]["node"] for run in runs}) <= 2
    finally:
        slurm.start_node(node)
        call("scontrol", "update", f"nodename={node}", "state=resume", check=False)


def test_a_drained_node_is_not_used(sweep: Make, slurm: SingleHost) -> None:
    call("scontrol", "update", f"nodename={NODES[0]}", "state=drain", "reason=test")
    try:
        study = sweep(sizes="[1]")
        study.finish(study.start())
        assert {run["cluster"]["node"] for run in check(study, 2)} == {NODES[1]}
    finally:
        call("scontrol", "update", f"nodename={NODES[0]}", "state=resume")


def test_a_controller_that_restarts_loses_nothing(sweep: Make, slurm: SingleHost) -> None:
    study = sweep(pause_s=3, runs_per_job=4)
    driver = study.start()
    study.until(study.runs)
    slurm.stop("slurmctld")
    slurm.start_controller()
    study.finish(driver)
    assert len({run["cluster"]["id"] for run in check(study, 4)}) == 1


def test_a_full_disk_ends_in_a_line_and_the_next_start_completes(sweep: Make, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1200k", "tmpfs", str(small)], check=False)
    if mounted.returncode:
        pytest.skip("no right to mount a small file system")
    try:
        study = sweep(folder=small, sizes="[1]")
        (small / "results").mkdir()
        (small / "results" / "ballast").write_bytes(bytes(900_000))
        assert study.start().wait(240) != 0
        (small / "results" / "ballast").unlink()
        subprocess.run(["mount", "-o", "remount,size=200m", str(small)], check=True)
        study.finish(study.start())
        check(study, 2)
    finally:
        subprocess.run(["umount", "-l", str(small)], check=False)
