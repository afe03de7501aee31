"""docs/workloads.md: its tables are those of the code, and its example runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from runner_support import Program

from tracelock.runner.settings import STANDARD, Setting, as_markdown
from tracelock.runner.workloads.tables import IMAGES, MLP, TRANSFORMER

PAGE = Path(__file__).parents[3] / "docs" / "workloads.md"
TABLES = {"standard": STANDARD, "images": IMAGES, "mlp": MLP, "transformer": TRANSFORMER}


def block(language: str) -> str:
    """Return the first block of code in a language."""
    found = re.search(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert found
    return found[1]


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_are_those_of_the_code(name: str) -> None:
    table: tuple[Setting, ...] = TABLES[name]
    assert f"<!-- settings: {name} -->\n{as_markdown(table)}\n" in PAGE.read_text(encoding="utf-8")


def test_the_example_runs_as_it_is_written(tmp_path: Path, program: Program) -> None:
    (tmp_path / "train.py").write_text(block("python"))
    (tmp_path / "spec.json").write_text(block("json"))
    done = program(tmp_path / "spec.json", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["warnings"] == []
    assert run["settings"]["hidden"] == 64
    losses = run["timed"]["loss"]
    assert sum(losses[-10:]) < sum(losses[:10])
