"""`tracelock clean` lists before it takes, and never takes what a conclusion rests on."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import pytest
from study_tree import StudyTree, Variant

from tracelock.cli import main
from tracelock.study.compare import compare

OLD = 1_000_000_000


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return results of a study of four runs with traces; the last was never analysed, and failed."""
    monkeypatch.chdir(tmp_path)
    study = StudyTree([Variant({"num_workers": 0}), Variant({"num_workers": 2})], repeats=2).write(Path("results/demo"))
    for run in study.glob("runs/*/*/*/run.json"):
        run.with_name("trace.json.gz").write_bytes(b"x" * 1000)
        run.with_name("samples.csv").write_text("t\n1\n", encoding="utf-8")
    last = study / "runs" / "default" / "num_workers=2" / "2"
    (last / "analysis.json").unlink()
    (last / "failure.json").write_text("{}", encoding="utf-8")
    (study / "logs").mkdir()
    (study / "logs" / "compare.txt").write_text("log", encoding="utf-8")
    left = study / "tables" / ".runs.abc.csv"
    left.parent.mkdir()
    left.write_text("half", encoding="utf-8")
    os.utime(left, (OLD, OLD))
    (study / "tables" / ".new.abc.csv").write_text("being written", encoding="utf-8")
    return study


def call(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["clean", *words])
    return int(ended.value.code or 0)


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_it_lists_and_takes_nothing_until_it_is_told(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(results)
    assert call() == 0
    said = capsys.readouterr().out
    assert "3 files  3.00 kB  results/demo" in said
    assert "--yes does it" in said
    assert files(results) == before


def test_it_takes_traces_and_keeps_what_the_conclusion_rests_on(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    was, before = compare(results), files(results)
    assert call("results/demo", "--yes", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "tracelock/clean/1"
    assert document["freed_bytes"] == sum(row["bytes"] for row in document["found"])
    gone = before - files(results)
    kept = "runs/default/num_workers=2/2"
    assert {file for file in gone if file.endswith("trace.json.gz")} == {
        f"runs/default/num_workers={workers}/{repeat}/trace.json.gz" for workers, repeat in ((0, 1), (0, 2), (2, 1))
    }
    assert gone - {file for file in gone if file.endswith(("trace.json.gz", "log.txt"))} == {
        "logs/compare.txt", "tables/.runs.abc.csv",
    }  # fmt: skip
    assert not any(file.startswith(kept) for file in gone)
    now = compare(results)
    whole = {field.name for field in dataclasses.fields(now)} - {"runs"}
    assert {name: getattr(now, name) for name in whole} == {name: getattr(was, name) for name in whole}
    assert [run.unknown.get("profiled.trace") for run in now.runs] == [
        *["taken away after its analysis (tracelock clean)"] * 3, None,
    ]  # fmt: skip


def test_kinds_can_be_chosen_and_are_spelt_right(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("--only", "logs", "--yes") == 0
    assert len(list(results.glob("runs/*/*/*/trace.json.gz"))) == 4
    assert call("--only", "trace") == 2
    assert "did you mean 'traces'?" in capsys.readouterr().err


def test_a_folder_that_is_no_study_is_never_touched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "trace.json.gz").write_bytes(b"x")
    assert call(str(tmp_path), "--yes") == 2
    assert "holds no results of a study" in capsys.readouterr().err
    assert (tmp_path / "trace.json.gz").exists()


def test_a_link_to_a_trace_elsewhere_is_left(results: Path, tmp_path: Path) -> None:
    outside = tmp_path / "precious.json.gz"
    outside.write_bytes(b"x")
    place = results / "runs" / "default" / "num_workers=0" / "1" / "trace.json.gz"
    place.unlink()
    place.symlink_to(outside)
    assert call("--yes") == 0
    assert place.is_symlink()
    assert outside.exists()
