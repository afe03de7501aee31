"""How long a thread waits for a core: read from what Linux counts for it, told apart from not known."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from tracelock.runner.outside.cores import Queue
from tracelock.runner.outside.tally import Tally


def test_the_wait_is_that_since_the_last_question(tmp_path: Path) -> None:
    counted = tmp_path / "schedstat"
    counted.write_text("100 2000 3\n")
    queue = Queue(str(counted))
    assert queue.lap() is None
    counted.write_text("100 2500 3\n")
    assert queue.lap() == 500
    assert queue.lap() == 0


@pytest.mark.parametrize("text", [None, "", "one two three", "12"])
def test_what_the_system_does_not_tell_is_not_known(tmp_path: Path, text: str | None) -> None:
    counted = tmp_path / "schedstat"
    if text is not None:
        counted.write_text(text)
    queue = Queue(str(counted))
    assert [queue.lap(), queue.lap()] == [None, None]


def test_another_thread_begins_anew(tmp_path: Path) -> None:
    counted = tmp_path / "schedstat"
    counted.write_text("100 2000 3\n")
    queue, found = Queue(str(counted)), [0, None]
    queue.lap()
    other = threading.Thread(target=lambda: found.append(queue.lap()))
    other.start()
    other.join()
    assert found[-1] is None


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone counts this")
def test_steps_of_a_script_say_how_long_they_waited_for_a_core() -> None:
    if Queue()._waited() is None:
        pytest.skip("this kernel does not count it")
    tally = Tally()
    steps = [tally.end_step(number) for number in range(3)]
    assert all(step.queued is not None and step.queued >= 0 for step in steps)
