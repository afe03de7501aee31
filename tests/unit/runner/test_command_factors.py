"""How factors reach a script, and which arguments of a DataLoader are replaced from outside."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import IterableDataset, TensorDataset

from tracelock.errors import TracelockError
from tracelock.runner.command.factors import apart, command_with
from tracelock.runner.outside.apply.loading import arguments_for
from tracelock.study.load import load_plan
from tracelock.study.plan import spec

SCRIPT = ["python", "train.py", "--lr", "0.1", "--batch-size=4", "--fast", "data"]


@pytest.mark.parametrize(
    ("factors", "words"),
    [
        ({"lr": 0.2}, ["python", "train.py", "--lr", "0.2", "--batch-size=4", "--fast", "data"]),
        ({"--batch-size": 8}, ["python", "train.py", "--lr", "0.1", "--batch-size", "8", "--fast", "data"]),
        ({"momentum": 0.9}, [*SCRIPT, "--momentum", "0.9"]),
        ({"nesterov": True}, [*SCRIPT, "--nesterov"]),
        ({"nesterov": False}, SCRIPT),
        ({"lr": None}, ["python", "train.py", "--batch-size=4", "--fast", "data"]),
    ],
)
def test_flags_stand_where_they_stood(factors: dict[str, Any], words: list[str], tmp_path: Path) -> None:
    assert command_with(SCRIPT, factors, "flags", tmp_path) == (words, {})


def test_other_forms(tmp_path: Path) -> None:
    assert command_with(["a"], {"lr": 0.2}, "env", tmp_path) == (["a"], {"LR": "0.2"})
    words, _ = command_with(["a", "model.lr=1", "+x=2"], {"model.lr": 0.2, "x": True}, "hydra", tmp_path)
    assert words == ["a", "model.lr=0.2", "x=true"]
    words, more = command_with(["a"], {"lr": 0.2}, "json", tmp_path)
    assert json.loads(Path(words[-1]).read_text()) == {"lr": 0.2}
    assert more == {"TRACELOCK_FACTORS": words[-1]}


def test_what_is_applied_and_what_is_told() -> None:
    assert apart({"num_workers": 2, "lr": 1}) == ({"num_workers": 2}, {"lr": 1})


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(4))


DATA = TensorDataset(torch.zeros(4))


@pytest.mark.parametrize(
    ("given", "wanted", "changed"),
    [
        (
            {"dataset": DATA},
            {"num_workers": 2, "persistent_workers": True},
            {"num_workers": 2, "persistent_workers": True},
        ),
        ({"dataset": DATA}, {"persistent_workers": True}, {}),  # no workers to keep
        ({"dataset": DATA, "num_workers": 2}, {"prefetch_factor": 4}, {"prefetch_factor": 4}),
        ({"dataset": Stream()}, {"num_workers": 2}, {}),  # each would read the whole stream
        ({"dataset": DATA, "batch_sampler": object()}, {"batch_size": 8}, {}),
        ({"dataset": DATA, "batch_size": None}, {"batch_size": 8}, {}),
        (
            {"dataset": DATA, "num_workers": 2, "persistent_workers": True, "prefetch_factor": 4},
            {"num_workers": 0},
            {"num_workers": 0, "persistent_workers": False, "prefetch_factor": None},
        ),
    ],
)
def test_arguments_of_a_loader(given: dict[str, Any], wanted: dict[str, Any], changed: dict[str, Any]) -> None:
    assert arguments_for(given, wanted) == changed


def study(folder: Path, workload: str) -> Path:
    file = folder / "study.yaml"
    file.write_text(f"name: x\nworkload: {workload}\nbaseline: {{ lr: 0.1 }}\nfactors: {{ num_workers: [0, 2] }}\n")
    return file


def test_a_study_of_a_command_leaves_the_rest_to_the_script(tmp_path: Path) -> None:
    plan = load_plan(study(tmp_path, "{ command: [python, train.py, 3], factors_as: hydra }"))
    document = spec(plan, plan.variants[1], "default")
    assert document["command"] == ["python", "train.py", "3"]
    assert (document["factors_as"], document["settings"]) == ("hydra", {"lr": 0.1, "num_workers": 2})


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        ("{ }", "workload.build: is missing"),
        ("{ build: 'a.py:b', command: [a] }", "workload.command: stands beside build"),
        ("{ command: [a], factors_as: flag }", "expected one of flags, env, json, hydra"),
    ],
)
def test_a_workload_is_a_function_or_a_command(workload: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(TracelockError) as caught:
        load_plan(study(tmp_path, workload))
    assert said in str(caught.value)
