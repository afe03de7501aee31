"""Attempts: the newest publishes, the dead are cleaned, and nothing of two attempts ever mixes."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from tracelock.errors import TracelockError
from tracelock.runner import attempt as module
from tracelock.runner.attempt import Attempt


def fill(attempt: Attempt, *names: str) -> list[str]:
    """Write files that hold the attempt's token."""
    for name in names:
        (attempt.work / name).write_text(attempt.token)
    return list(names)


def visible(folder: Path) -> dict[str, str]:
    """Return the published files and what they hold."""
    return {path.name: path.read_text() for path in folder.iterdir() if not path.name.startswith(".")}


def test_the_newest_attempt_publishes_and_the_older_one_learns_it(tmp_path: Path) -> None:
    old = Attempt(tmp_path, "old")
    new = Attempt(tmp_path, "new")
    with pytest.raises(TracelockError, match="newer attempt") as caught:
        old.publish(fill(old, "run.json", "log.txt"))
    assert caught.value.exit_code == 1
    assert visible(tmp_path) == {}
    new.publish(fill(new, "run.json", "log.txt"))
    with pytest.raises(TracelockError, match="newer attempt"):
        old.publish(["log.txt"])
    old.close()
    new.close()
    assert visible(tmp_path) == {"run.json": "new", "log.txt": "new"}
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


def test_two_attempts_with_one_token_are_still_two(tmp_path: Path) -> None:
    first, second = Attempt(tmp_path, "job-7"), Attempt(tmp_path, "job-7")
    assert first.work != second.work
    with pytest.raises(TracelockError, match="newer attempt"):
        first.publish(fill(first, "run.json"))


def test_a_new_attempt_takes_away_all_that_an_older_one_published(tmp_path: Path) -> None:
    first = Attempt(tmp_path)
    names = ["run.json", "samples.csv", "log.txt", "trace.json.gz", "trace.2.json.gz", "host_1.2.pt.trace.json.gz"]
    first.publish(fill(first, *names))
    first.close()
    (tmp_path / "analysis.json").write_text("another program's")
    assert set(visible(tmp_path)) == {*names, "analysis.json"}
    second = Attempt(tmp_path)
    assert set(visible(tmp_path)) == {"analysis.json"}
    second.close()


def test_dead_attempts_are_cleaned_and_living_ones_left(tmp_path: Path) -> None:
    living = Attempt(tmp_path)
    dead = Attempt(tmp_path)
    os.close(dead._alive)
    new = Attempt(tmp_path)
    assert living.work.is_dir()
    assert not dead.work.exists()
    assert new.work.is_dir()


def test_run_json_comes_last_and_the_old_one_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempt = Attempt(tmp_path)
    order: list[str] = []
    replace = Path.replace
    monkeypatch.setattr(Path, "replace", lambda path, to: order.append(path.name) or replace(path, to))
    attempt.publish(fill(attempt, "run.json", "trace.json.gz", "samples.csv"))
    assert order[-1] == "run.json"
    assert len(order) == 3


def test_a_file_system_without_locks_is_lived_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSYS, "no locks")

    monkeypatch.setattr(fcntl, "flock", refuse)
    old, new = Attempt(tmp_path), Attempt(tmp_path)
    assert old.work.is_dir()  # nobody can tell that it is dead
    with pytest.raises(TracelockError, match="newer attempt"):
        old.publish(fill(old, "run.json"))
    new.publish(fill(new, "run.json"))
    assert visible(tmp_path) == {"run.json": new.token}


def test_any_other_failure_of_a_lock_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "broken disk")

    monkeypatch.setattr(module.fcntl, "flock", refuse)
    with pytest.raises(OSError, match="broken disk"):
        Attempt(tmp_path)


@pytest.mark.parametrize("token", ["", "a/b", "..\n", "x" * 81, "ä"])
def test_a_token_has_to_be_fit_for_a_folder(tmp_path: Path, token: str) -> None:
    if token:
        with pytest.raises(TracelockError, match="token: is"):
            Attempt(tmp_path, token)
    else:
        assert len(Attempt(tmp_path, token).token) == 32
