"""Which copies count as such: those that somebody asked for, not what an operator does within itself."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import Host, make_trace, op, step

from tracelock.analysis import analyze

STEP = 100_000


def nested(*names: str) -> list[Host]:
    """Return operators of which each lies in the one before, the innermost 20 µs long."""
    depth = len(names) - 1
    return [op(name, 1_000 + i * 100, 20_000 + 200 * (depth - i)) for i, name in enumerate(names)]


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (("aten::clone", "aten::copy_"), "clone"),
        (("aten::copy_",), "copy"),
        (("aten::contiguous", "aten::clone", "aten::copy_"), "contiguous"),
        (("aten::reshape", "aten::clone", "aten::copy_"), "clone"),
        (("aten::reshape", "aten::copy_"), "copy"),
        (("aten::to", "aten::_to_copy", "aten::copy_"), "cast"),
        # an operand that is not contiguous: the layout is the caller's
        (("aten::linear", "aten::matmul", "aten::reshape", "aten::clone", "aten::copy_"), "clone"),
        (("autograd::engine::evaluate_function: CopyBackwards", "CopyBackwards", "aten::copy_"), "copy"),
        # the bias of a layer, the zeros around a piece's gradient
        (("aten::linear", "aten::addmm", "aten::copy_"), None),
        (("autograd::engine::evaluate_function: SelectBackward0", "aten::select_backward", "aten::copy_"), None),
        (("aten::cat", "aten::copy_"), None),
    ],
)
def test_the_copy_that_an_operator_makes_within_itself_is_no_copy_of_the_users(
    names: tuple[str, ...], kind: str | None
) -> None:
    rows = [each for number in range(3) for each in _shifted(number, [step(number, 0, STEP), *nested(*names)])]
    found = analyze(make_trace(rows)).work
    assert found is not None
    assert [(each.kind, each.calls_per_step) for each in found.copies] == ([(kind, 1.0)] if kind else [])


def _shifted(number: int, rows: list[Host]) -> list[Host]:
    return [replace(row, start=row.start + number * STEP) for row in rows]
