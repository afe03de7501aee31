"""The examples below the help of commands: every command has some, and what they show is understood."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from tracelock.cli._app import app_of
from tracelock.cli._examples import EXAMPLES

HERE = Path(__file__).parents[3] / "scripts" / "tracelock" / "cli"
GROUPS = sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))


def commands(group: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{above}{name} ")
        else:
            yield f"{above}{name}", command


@pytest.fixture(scope="module")
def known() -> dict[str, Any]:
    return dict(commands(typer.main.get_command(app_of(GROUPS))))


def test_every_command_has_examples_below_its_help(known: dict[str, Any]) -> None:
    assert set(known) <= set(EXAMPLES)
    assert all(example in known[name].epilog for name in known for example in EXAMPLES[name])


def test_what_examples_show_is_understood(known: dict[str, Any]) -> None:
    for name, command in known.items():
        for example in EXAMPLES[name]:
            words = shlex.split(example)
            own = words[1 + len(name.split()) :]
            assert words[: len(words) - len(own)] == ["tracelock", *name.split()]
            context = command.context_class(command, info_name=name, **command.context_settings)
            given, _left, _order = command.make_parser(context).parse_args(list(own))  # an unknown option raises
            assert given or not own
