"""What `tracelock init` writes is a study that can be planned, of any folder's name and of any command."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracelock.cli import main
from tracelock.errors import TracelockError
from tracelock.study.load import load_plan
from tracelock.study.starting import start, suggested, words_of


def test_a_study_and_its_workload_are_planned_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["init", "ein Ordner"])
    assert not ended.value.code
    said = capsys.readouterr().out
    assert "2 variants, 6 runs" in said
    assert "tracelock study run 'ein Ordner/ein-Ordner.yaml'" in said
    plan = load_plan(tmp_path / "ein Ordner" / "ein-Ordner.yaml")
    assert [variant.settings["num_workers"] for variant in plan.variants] == [0, 2]
    assert plan.variants[0].settings["decodings"] == 60  # the settings that the workload declares are known


def test_what_is_there_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a_work.py").write_text("mine", encoding="utf-8")
    with pytest.raises(TracelockError) as refused:
        start(tmp_path, "a")
    assert "is there already" in str(refused.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a_work.py"]
    assert (tmp_path / "a_work.py").read_text(encoding="utf-8") == "mine"


@given(st.text(max_size=30))
def test_any_folder_gives_a_name_that_a_study_can_have(text: str) -> None:
    assert words_of(suggested(text)) == [suggested(text)]
    assert not set(suggested(text)) & set("/\\ .:{}")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1), min_size=1, max_size=5))
def test_a_command_arrives_word_by_word(tmp_path: Path, words: list[str]) -> None:
    for file in tmp_path.iterdir():
        file.unlink()
    (file,) = start(tmp_path, "s", words_of(shlex.join(words)))
    assert yaml.safe_load(file.read_text(encoding="utf-8"))["workload"]["command"] == words
    assert len(load_plan(file).variants) == 2


@pytest.mark.parametrize("line", ['python "train.py', "  "])
def test_what_is_no_command_is_told(line: str) -> None:
    with pytest.raises(TracelockError, match="--command"):
        words_of(line)


def test_the_options_that_stand_there_to_be_uncommented_are_sound(tmp_path: Path) -> None:
    file, _ = start(tmp_path, "s")
    text = file.read_text(encoding="utf-8")
    optional = ("# batch_size", "# amp", "# remedies")
    lines = [line.replace("# ", "", 1) if line.strip().startswith(optional) else line for line in text.splitlines()]
    file.write_text("\n".join(lines), encoding="utf-8")
    plan = load_plan(file)
    assert plan.study.remedies.test
    assert {variant.settings["amp"] for variant in plan.variants} == {"off", "bf16"}
    assert len(plan.variants) == 8
