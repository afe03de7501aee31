"""How long a script is waited for: as long as its steps end, and a while after its window."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tracelock.runner.command import patience
from tracelock.runner.command.patience import Patience
from tracelock.runner.outside.schedule import plan


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def _process(folder: Path, steps: int, trace: str | None) -> None:
    (folder / "7").mkdir(exist_ok=True)
    (folder / "7" / "count").write_text(str(steps))
    (folder / "7" / "record.json").write_text(json.dumps({"window": {"trace": trace}}))


def test_a_script_whose_steps_go_on_is_never_ended_however_long_it_takes(tmp_path: Path, clock: list[float]) -> None:
    waits = Patience(tmp_path, silent_s=60.0)
    for step in range(200):
        _process(tmp_path, step, None)
        clock[0] += 55
        assert not waits()


def test_a_script_that_stands_still_is_ended_and_why_is_known(tmp_path: Path, clock: list[float]) -> None:
    waits = Patience(tmp_path, silent_s=60.0)
    _process(tmp_path, 3, None)
    clock[0] += 50
    assert not waits()  # the third step is seen now
    clock[0] += 61
    assert waits()
    assert waits.ended == "no step ended for 61 s"


def test_one_that_has_been_recorded_is_waited_for_less_long(tmp_path: Path, clock: list[float]) -> None:
    waits = Patience(tmp_path, silent_s=600.0, leaving_s=20.0)
    _process(tmp_path, 3, "trace.json")
    clock[0] += 5
    assert not waits()
    clock[0] += 21
    assert waits()
    assert waits.ended == "it had not ended 21 s after its window"


def test_without_a_limit_nothing_is_ended(tmp_path: Path, clock: list[float]) -> None:
    waits = Patience(tmp_path, silent_s=None)
    clock[0] += 10**6
    assert not waits()


def test_files_that_are_being_written_are_no_reason(tmp_path: Path, clock: list[float]) -> None:
    waits = Patience(tmp_path, silent_s=60.0, leaving_s=20.0)
    _process(tmp_path, 3, None)
    for half in ("", "{", "[]", '{"window": null}'):
        (tmp_path / "7" / "record.json").write_text(half)
        clock[0] += patience._LOOK_S
        assert not waits()


def test_where_steps_are_too_long_for_the_limit_fewer_are_timed() -> None:
    assert plan(3, 10.0, None, 20, 3, left_s=270.0).plain() == {"timed": 3, "window": 23, "end": 27}
    assert plan(3, 20.0, None, 20, 3, left_s=240.0).plain() == {"timed": 3, "window": 11, "end": 15}
    assert plan(3, 60.0, None, 20, 3, left_s=120.0).plain() == {"timed": 3, "window": 6, "end": 10}
    assert plan(3, 60.0, None, 20, 3, left_s=-9.0).plain() == {"timed": 3, "window": 6, "end": 10}
    assert plan(3, 60.0, None, 2, 3, left_s=-9.0).plain() == {"timed": 3, "window": 5, "end": 9}
