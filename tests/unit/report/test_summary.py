"""The end of a study in the terminal."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console
from study_tree import demo_tree
from typer.testing import CliRunner

from tracelock.cli import build_app
from tracelock.report.figures import ORDER
from tracelock.report.summary import print_summary
from tracelock.study import comparison as document
from tracelock.study.comparison import Comparison


def printed(comparison: Comparison, folder: Path, width: int) -> str:
    document.write(folder / "comparison.json", comparison)
    stream = io.StringIO()
    print_summary(folder, Console(file=stream, width=width, highlight=False))
    return stream.getvalue().replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize("width", [80, 140])
def test_each_variant_has_one_line_with_its_figures(demo: Comparison, tmp_path: Path, width: int) -> None:
    text = printed(demo, tmp_path, width)
    lines = text.splitlines()
    for case in demo.cases:
        workers, persistent = case.factors["num_workers"], case.factors["persistent_workers"]
        time, rate = f"{case.step.value / 1000:.0f} ms", f"{case.throughput.value:.0f}/s"
        (line,) = [line for line in lines if time in line and rate in line]
        for word in (str(case.factors["batch_size"]), str(workers), str(persistent)):
            assert word in line.split()
        assert "baseline" in line if case.baseline else "faster" in line
    assert "num_workers=2" in text
    assert "dataloader-bound" in text
    assert lines[-1] == f"Report: {tmp_path / 'report.html'}"
    assert max(map(len, lines[:-1])) <= width


def test_missing_runs_and_unlocked_environments_are_said(gpus: Comparison, tmp_path: Path) -> None:
    text = printed(gpus, tmp_path, 140)
    text = " ".join(text.split())
    assert "1 of 3 missing" in text
    assert "missing: b/batch_size=32,num_workers=1,persistent_workers=true, run 3: failed; log: runs/b/" in text
    assert "‡ UNLOCKED: b differs from its lock in 1 place: numpy." in text
    assert "b‡" in text


@pytest.mark.parametrize("study", ["single", "hostile", "forty"])
@pytest.mark.parametrize("width", [80, 140])
def test_any_study_can_be_printed(study: str, width: int, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    assert "Report: " in printed(request.getfixturevalue(study), tmp_path, width)


def test_names_are_never_taken_as_markup(hostile: Comparison, tmp_path: Path) -> None:
    assert "<script>" in printed(hostile, tmp_path, 140)


def test_the_command_makes_everything(tmp_path: Path) -> None:
    folder = demo_tree(repeats=1).write(tmp_path / "demo")
    done = CliRunner().invoke(build_app(["report", "version"]), ["report", str(folder)])
    assert done.exit_code == 0, done.output
    assert (folder / "report.html").is_file()
    assert {file.stem for file in (folder / "figures").iterdir()} == set(ORDER)
    assert len(list((folder / "tables").iterdir())) == 5
    assert "report.html" in done.output
