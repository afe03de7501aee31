"""Steps of scripts that know nothing of us: exactly the script's own count, its own times, its own end."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import pytest
from scripts_support import Seen, run_case

LABELS = {"forward_pass", "backward_pass"}
CASES: dict[str, tuple[list[str], int]] = {
    "plain": (["plain.py"], 60),
    "module": (["-m", "plain"], 60),
    "accumulation": (["plain.py", "--accumulate", "4", "--batches", "80"], 40),
    "short epochs": (["plain.py", "--epochs", "3", "--batches", "5"], 15),
    "nested, no workers": (["nested.py", "0", ""], 40),
    "nested, fork": (["nested.py", "2", "fork"], 40),
    "nested, spawn": (["nested.py", "1", "spawn"], 40),
    "gan": (["several.py", "gan"], 40),
    "critic": (["several.py", "critic"], 40),
    "phases": (["several.py", "phases"], 40),
    "lbfgs": (["several.py", "lbfgs"], 40),
    "wrapped": (["several.py", "wrapped"], 40),
    "iterable": (["feeding.py", "iterable"], 40),
    "generator": (["feeding.py", "generator"], 40),
    "queue": (["feeding.py", "queue"], 40),
    "cells": (["processes.py", "cells"], 40),
    "amp": (["amp.py"], 40),
    "compile": (["compiled.py", "model"], 40),
    "compiled step": (["compiled.py", "step"], 40),
    "lightning": (["lightning_fit.py"], 60),
    "trainer": (["trainer.py", "1"], 80),
    "trainer, accumulation": (["trainer.py", "2"], 40),
    "accelerate": (["accelerated.py"], 40),
}


@pytest.mark.parametrize("name", CASES)
def test_every_step_is_seen_once_and_timed_as_the_script_times_it(name: str, tmp_path: Path) -> None:
    words, steps = CASES[name]
    seen = run_case(tmp_path, *words)
    assert (seen.exit_code, seen.own["steps"]) == (0, steps), seen.output
    assert [process.steps for process in seen.found] == [steps]
    _assert_measured(seen)


def _assert_measured(seen: Seen) -> None:
    record = seen.record
    assert record["timed"]["steps"] >= 5
    _assert_same_times(seen)
    assert record["window"]["steps"] >= 3
    # Where the script ends inside the window, the trace holds the step that it was in, too.
    assert seen.marked_steps() - record["window"]["steps"] == (record["stopped_by"] == "the end of the script")
    assert seen.labels() >= LABELS
    assert any(label.startswith("Optimizer.step#") for label in seen.labels())
    assert not record["notes"]


def _assert_same_times(seen: Seen) -> None:
    """Each of our steps ends between two looks of the script at the same clock, 2 ms before the second.

    So the timed steps together differ from the script's own by no more than one delay, whatever else the machine does.
    """
    first, timed = seen.record["warmup"]["steps"], seen.record["timed"]
    own = seen.own["ends"][first - 1 : first + timed["steps"]]
    ours = [timed["began_s"] + at / 1e6 for at in accumulate(timed["step_us"], initial=0)]
    delays = [theirs - mine for theirs, mine in zip(own, ours, strict=True)]
    assert min(delays[1:]) >= 0.002 - 1e-4
    assert all(mine > before for mine, before in zip(ours[1:], own, strict=False))
