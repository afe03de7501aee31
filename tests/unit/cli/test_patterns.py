"""Files that the command line gives by a pattern or through standard input, for every command that reads a trace."""

from __future__ import annotations

import io
import json
import random
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracelock.cli import main
from tracelock.cli._given import _natural, expanded
from tracelock.errors import TracelockError

TRACE = {
    "traceEvents": [
        {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 1, "dur": 100},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 2, "dur": 90},
    ]
}


class Pipe:
    """Standard input that is a pipe."""

    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)

    def isatty(self) -> bool:
        return False


def call(*words: str) -> int:
    try:
        main(list(words))
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


@pytest.fixture
def ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for rank in (0, 1, 2, 10):
        document = {**TRACE, "distributedInfo": {"rank": rank, "world_size": 4}}
        file = tmp_path / "run" / f"rank{rank}.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(document), encoding="utf-8")
    return tmp_path


def test_a_pattern_stands_for_its_files_in_the_order_of_their_numbers(ranks: Path) -> None:
    names = [path.name for path in expanded([Path("run/*.json")])]
    assert names == ["rank0.json", "rank1.json", "rank2.json", "rank10.json"]
    assert expanded([Path("**/rank1?.json")]) == [Path("run/rank10.json")]


def test_a_name_that_only_looks_like_a_pattern_is_a_name(ranks: Path) -> None:
    odd = ranks / "run" / "rank[0].json"
    odd.write_text("{}", encoding="utf-8")
    assert expanded([odd]) == [odd]
    assert expanded([Path("absent.json"), Path("-")]) == [Path("absent.json"), Path("-")]


def test_what_matches_nothing_is_told(ranks: Path) -> None:
    with pytest.raises(TracelockError, match=r"run/\*\.gz: no file has such a name"):
        expanded([Path("run/*.gz")])


@given(st.lists(st.integers(0, 10**6), min_size=2, unique=True))
def test_numbers_are_ordered_by_value_wherever_they_stand(numbers: list[int]) -> None:
    paths = [Path(f"node{number}/rank{number}.json") for number in numbers]
    random.Random(1).shuffle(paths)
    assert sorted(paths, key=_natural) == [Path(f"node{n}/rank{n}.json") for n in sorted(numbers)]


@pytest.mark.parametrize("command", ["analyze", "report"])
def test_commands_of_ranks_take_a_pattern(command: str, ranks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(command, "run/*.json") == 0
    said = capsys.readouterr().out
    assert said.index("rank2.json") < said.index("rank10.json")


@pytest.mark.parametrize(
    "words",
    [
        ("analyze", "-"),
        ("report", "-", "-o", "page.html"),
        ("slim", "-", "small.json", "--steps", "1"),
        ("flame", "-", "out.folded", "--format", "collapsed"),
    ],
)
def test_commands_of_a_trace_read_standard_input(
    words: tuple[str, ...], ranks: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Pipe(json.dumps(TRACE).encode()))
    assert call(*words) == 0, capsys.readouterr().err
    said = capsys.readouterr()
    assert "tracelock-" not in said.out + said.err  # the name of the file that it is kept in is nobody's concern
    made = [Path(word) for word in words if word.endswith((".html", ".json", ".folded"))]
    assert all(path.stat().st_size for path in made)
