"""Two sides compared: recognised, refused with a reason, judged, and what changed in the order of its share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from study_tree import StudyTree, Variant
from typer.testing import CliRunner

from tracelock.analysis.difference import BUILD, ONE_SIDE, ROLE, SAME, trace_difference
from tracelock.analysis.identities import role, without_build
from tracelock.analysis.model import Kernel
from tracelock.cli import build_app
from tracelock.errors import TracelockError
from tracelock.io import read_json, write_json
from tracelock.report.pair import junit, markdown
from tracelock.study.pair import Pair, compare_sides
from tracelock.study.sides import Side, read_side

HOSTILE = "<script>|`x`\n*_[a](b)"
ROOT = Path(__file__).resolve().parents[3]


def study(folder: Path, step_us: float = 100_000, seed: int = 1, repeats: int = 4, **changes: object) -> Path:
    variants = [
        Variant({"num_workers": 0}, step_us=step_us, loading=0.4),
        Variant({"num_workers": 2}, step_us=60_000, loading=0.02),
    ]
    return StudyTree(variants, seed=seed, repeats=repeats, **changes).write(folder)


def side(path: Path) -> Side:
    return read_side(path, lambda _: pytest.fail("no trace"))


def both(one: Path, other: Path, anyway: bool = False) -> Pair:
    return compare_sides(side(one), side(other), anyway)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("triton_poi_fused_add_relu_3", "triton_poi_fused_add_relu_17"),
        ("triton_red_fused_sum_0_0d1d2de", "triton_red_fused_sum_4_0d1d2de"),
        ("_attn_fwd_0a1b2c3d4e5f6a7b", "_attn_fwd_ffeeddccbbaa0099"),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>(int)",
            "void at::native::vectorized_elementwise_kernel<8, at::native::AddFunctor<float, true>>(int, char)",
        ),
        ("autograd::engine::evaluate_function: ConvBackward0", "autograd::engine::evaluate_function: ConvBackward1"),
        ("sm80_xmma_gemm_f32f32_tilesize128x64x32_stage4", "sm90_xmma_gemm_f32f32_tilesize64x64x32_stage3"),
    ],
)
def test_names_that_differ_by_the_build_alone_are_one(one: str, other: str) -> None:
    assert without_build(one) == without_build(other)


def test_names_that_differ_in_what_they_do_stay_apart() -> None:
    names = ["aten::add", "aten::addmm", "triton_poi_fused_add_3", "triton_poi_fused_mul_3", "sm80_xmma_wgrad_a"]
    assert len({without_build(name) for name in names}) == len(names)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cudnn::cnn::wgrad_alg0_engine<float, 512>", "convolution, gradient of weights"),
        ("sm90_xmma_fprop_implicit_gemm_tf32f32", "convolution, forward"),
        ("ampere_sgemm_128x64_nn", "matrix product"),
        ("nvjet_hsh_128x128", "matrix product"),
        ("ncclDevKernel_AllReduce_Sum_f32", "communication"),
        ("pytorch_flash::flash_fwd_kernel<x>", "attention"),
        ("no_such_thing_xyz", None),
    ],
)
def test_roles(name: str, expected: str | None) -> None:
    assert role(name) == expected


def test_what_changed_by_hand(tmp_path: Path) -> None:
    """Step 100 -> 150 µs, three steps: kernels that stayed, were renamed, were replaced, and appeared."""
    analysis = side(study(tmp_path / "a")).first[0].analysis
    assert analysis is not None

    def kernels(*rows: tuple[str, float]) -> tuple[Kernel, ...]:
        return tuple(Kernel(name, 3, 3 * time, time, time, time) for name, time in rows)

    before = replace(
        analysis,
        step=replace(analysis.step, mean_us=100.0),
        kernels=kernels(("same", 10), ("triton_poi_fused_add_1", 20), ("ampere_sgemm_128x64_nn", 30), ("gone", 5)),
    )
    after = replace(
        analysis,
        step=replace(analysis.step, mean_us=150.0),
        kernels=kernels(("same", 11), ("triton_poi_fused_add_9", 24), ("nvjet_hsh", 70)),
    )
    found = trace_difference(before, after)
    assert found is not None
    told = [(row.name, row.matched, row.before_us, row.after_us, row.share) for row in found.kernels]
    assert told == [
        ("ampere_sgemm_128x64_nn", ROLE, 30, 70, pytest.approx(0.8)),
        ("gone", ONE_SIDE, 5, None, pytest.approx(-0.1)),
        ("triton_poi_fused_add_1", BUILD, 20, 24, pytest.approx(0.08)),
        ("same", SAME, 10, 11, pytest.approx(0.02)),
    ]
    assert found.ratio == 1.5


def test_a_study_that_became_slower_is_told_with_its_interval(tmp_path: Path) -> None:
    pair = both(study(tmp_path / "a"), study(tmp_path / "b", 115_000, seed=2))
    assert [one.name for one in pair.cases] == ["num_workers=0", "num_workers=2"]
    first, second = (one.difference for one in pair.cases)
    assert first.verdict == "slower"
    assert first.ratio.low <= 1.15 <= first.ratio.high
    assert second.verdict in ("no difference", "unclear")
    assert pair.above(0.05) == ["num_workers=0"]
    assert pair.above(0.30) == []
    assert pair.changed is not None
    shares = [row.share for row in pair.changed.parts if row.share is not None]
    assert sum(shares) == pytest.approx(1, abs=1e-6)
    changes = [abs(row.change_us) for row in pair.changed.parts]
    assert changes == sorted(changes, reverse=True)


def test_equal_studies_pass_the_gate(tmp_path: Path) -> None:
    pair = both(study(tmp_path / "a"), study(tmp_path / "b", seed=2))
    assert pair.above(0.05) == []
    assert pair.above(0.0) == []


def test_runs_of_a_variant_and_single_runs(tmp_path: Path) -> None:
    one, other = study(tmp_path / "a"), study(tmp_path / "b", 130_000, seed=2)
    place = Path("runs", "default", "num_workers=0")
    (case,) = both(one / place, other / place).cases
    assert (case.before_runs, case.after_runs, case.difference.verdict) == (4, 4, "slower")
    (case,) = both(one / place / "1", other / place / "2" / "run.json").cases
    assert case.difference.verdict is None
    assert "single run" in case.difference.why


def test_bare_analyses_are_one_sample_each(tmp_path: Path) -> None:
    file = study(tmp_path / "a") / "runs/default/num_workers=0/1/analysis.json"
    pair = both(file, file)
    assert pair.cases == ()
    assert pair.verdict == "one sample each: no verdict on noise"
    assert pair.ratio == 1.0
    assert pair.above(0.0) == []


def test_what_does_not_go_together_is_refused_with_all_reasons(tmp_path: Path) -> None:
    one = study(tmp_path / "a")
    other = study(tmp_path / "b", gpus=1, unlocked={"default": True})
    plan = read_json(other / "plan.json", "plan")
    write_json(other / "plan.json", {**plan, "workload": "mine.py:build"})
    with pytest.raises(TracelockError) as failure:
        both(one, other)
    text = str(failure.value)
    assert "other workloads: tracelock.runner.workloads.images:build and mine.py:build" in text
    assert "other hardware: Xeon and NVIDIA A100" in text
    assert "no lock or differs from it" in text
    assert len(both(one, other, anyway=True).notes) >= 3


def test_packages_stand_beside(tmp_path: Path) -> None:
    folders = [study(tmp_path / name, seed=seed) for seed, name in enumerate("ab")]
    for folder, version in zip(folders, ("2.12", "2.13"), strict=True):
        packages = [{"name": "torch", "version": version}, {"name": "numpy", "version": "2.4"}]
        write_json(folder / "envs/default/packages.json", {"schema": "tracelock/packages/1", "packages": packages})
    assert both(*folders).packages == {"torch": ("2.12", "2.13")}


def test_documents_for_people_and_servers_hold_hostile_names(tmp_path: Path) -> None:
    pair = both(study(tmp_path / "a"), study(tmp_path / "b", 115_000, seed=2))
    cases = (replace(pair.cases[0], name=HOSTILE), pair.cases[1])
    hostile = replace(pair, cases=cases, settings={HOSTILE: (HOSTILE, "\x00")})
    text = markdown(hostile, 5, [HOSTILE], 0.05)
    assert "<script>" not in text
    assert all(line.count(" | ") < 6 for line in text.splitlines())
    suite = ET.fromstring(junit(hostile, [HOSTILE], 0.05))
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    (failure,) = suite.iter("failure")
    assert "more than 5.0 % longer" in (failure.get("message") or "")


def test_the_command_and_its_exit_codes(tmp_path: Path) -> None:
    one, other = str(study(tmp_path / "a")), str(study(tmp_path / "b", 120_000, seed=2))
    app = build_app(["compare", "version"])

    def run(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, ["compare", *arguments])
        assert done.exception is None or isinstance(done.exception, SystemExit | TracelockError)
        return (done.exception.exit_code if isinstance(done.exception, TracelockError) else done.exit_code), done.output

    assert run(one, other)[0] == 0
    code, text = run(one, other, "--fail-above", "5%", "--junit", str(tmp_path / "gate.xml"))
    assert code == 1
    assert "FAILED: num_workers=0" in text
    assert max(map(len, text.splitlines())) <= 80
    assert ET.parse(tmp_path / "gate.xml").getroot().get("failures") == "1"
    assert run(one, other, "--fail-above", "0.5")[0] == 0
    assert run(one, other, "--fail-above", "much")[0] == 2
    assert run(one, str(tmp_path / "nothing"))[0] == 2
    document = json.loads(run(one, other, "--json", "--fail-above", "5%")[1])
    assert document["schema"] == "tracelock/pair/1"
    assert document["gate"] == {"limit": 0.05, "failed": ["num_workers=0"]}
    assert "| variant |" in run(one, other, "--markdown")[1]


@pytest.mark.parametrize(("step_us", "code"), [(100_000, 0), (120_000, 1)])
def test_the_example_s_gate(tmp_path: Path, step_us: float, code: int) -> None:
    """The script of examples/ci-gate with results that are there already: its study is not measured here."""
    study(tmp_path / "before" / "results" / "gate")
    study(tmp_path / "after" / "results" / "gate", step_us, seed=2)
    tool = tmp_path / "bin" / "tracelock"
    tool.parent.mkdir()
    python = f'PYTHONPATH={ROOT / "scripts"} exec {sys.executable} -m tracelock.cli "$@"'
    tool.write_text(f'#!/bin/sh\n[ "$1" = study ] && exit 0\n{python}\n')
    tool.chmod(0o755)
    paths = f"{tool.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [str(ROOT / "examples/ci-gate/gate.sh"), str(tmp_path / "before"), str(tmp_path / "after")],
        cwd=tmp_path, env={**os.environ, "PATH": paths}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    assert (tmp_path / "gate.xml").is_file()
