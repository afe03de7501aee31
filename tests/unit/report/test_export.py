"""Figures for papers and slides: sizes, formats, fonts, captions."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
from study_tree import StudyTree, Variant

from tracelock.analysis import document
from tracelock.cli import main
from tracelock.diagnosis import Diagnosed
from tracelock.report.trace.stills import draw, stills
from tracelock.study import comparison
from tracelock.study.compare import compare


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = StudyTree(
        [Variant({"num_workers": 0}, loading=0.4), Variant({"num_workers": 2}, step_us=60_000)], repeats=2
    ).write(tmp_path_factory.mktemp("study"))
    comparison.write(folder / "comparison.json", compare(folder))
    return folder


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return int(ended.value.code or 0)


def test_figures_have_the_size_that_was_asked_for_and_their_fonts_with_them(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("figures", str(results), "--format", "svg,pdf,png", "-o", str(tmp_path))
    assert run(*words, "--size", "column") == 0
    assert "captions.txt" in capsys.readouterr().out
    svg = (tmp_path / "step_time-column.svg").read_text(encoding="utf-8")
    assert f'width="{3.9 * 72:g}pt"' in svg
    assert "<text" not in svg  # letters are shapes
    pdf = (tmp_path / "step_time-column.pdf").read_bytes()
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+)", pdf)
    assert box is not None
    assert float(box[1]) == pytest.approx(3.9 * 72)
    assert pdf.count(b"/FontFile2") >= 1
    png = (tmp_path / "step_time-column.png").read_bytes()
    assert struct.unpack(">I", png[16:20])[0] == 780
    captions = (tmp_path / "captions.txt").read_text(encoding="utf-8")
    assert captions.startswith("step_time: Step time by variant.")
    assert "4 runs on" in " ".join(captions.split())


def test_mistakes_are_one_line_each(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("figures", str(results), "--size", "colum") == 2
    assert "did you mean 'column'?" in capsys.readouterr().err
    assert run("figures", str(results), "--format", "gif") == 2
    assert run("figures", str(results / "absent")) == 2
    assert "absent: does not exist" in capsys.readouterr().err


def test_a_trace_has_figures_with_captions_that_say_that_it_is_one_recording(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = results / "runs" / "default" / "num_workers=0" / "1" / "analysis.json"
    assert run("figures", str(source), "--format", "svg,pdf,png", "--size", "slide", "-o", str(tmp_path)) == 0
    captions = (tmp_path / "captions.txt").read_text(encoding="utf-8")
    assert "no interval" in " ".join(captions.split())
    made = {f"{name}-slide.{kind}" for name in ("breakdown", "operators") for kind in ("svg", "pdf", "png")}
    assert {path.name for path in tmp_path.iterdir()} == {"captions.txt", *made}


def test_bars_of_a_trace_are_its_figures(results: Path) -> None:
    found = document.read(results / "runs" / "default" / "num_workers=0" / "1" / "analysis.json", Diagnosed)
    every = {still.name: still for still in stills(found)}
    assert sum(value for _, value in every["breakdown"].rows) == pytest.approx(found.step.mean_us)
    per_step = {each.name: each.self_cpu_us / 3 for each in found.operators}
    assert dict(every["operators"].rows) == pytest.approx(per_step)
    axes = draw(every["operators"], 3.9).axes[0]
    widths = [bar.get_width() for bar in axes.patches]
    assert widths == sorted(widths, reverse=True)
    assert "the 4 of 4 operators" in every["operators"].caption
