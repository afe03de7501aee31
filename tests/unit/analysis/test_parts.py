"""The parts of a step and the causes of idle time stand in one table; what shows them takes them from there."""

from __future__ import annotations

from dataclasses import fields

import pytest

from tracelock.analysis.model import Breakdown, IdleCauses
from tracelock.analysis.parts import IDLE, STEP, Labelled
from tracelock.report.figures import breakdown, device
from tracelock.report.figures._stack import drawn
from tracelock.report.style import GREY, Look


def test_the_tables_name_the_keys_of_the_json_in_its_order() -> None:
    assert [part.key for part in STEP] == [key.name for key in fields(Breakdown)]
    assert [part.key for part in IDLE] == [key.name for key in fields(IdleCauses)]


def test_no_two_parts_are_told_in_the_same_words() -> None:
    for table in (STEP, IDLE):
        assert len({part.label for part in table}) == len({part.head for part in table}) == len(table)


def test_the_figures_draw_every_part() -> None:
    assert set(breakdown.PARTS) == {part.key for part in STEP}
    assert set(device.PARTS) == {part.key for part in IDLE} | {"busy", "idle"}


def test_a_part_without_a_look_stops_a_figure_instead_of_vanishing_from_it() -> None:
    with pytest.raises(KeyError, match="no look for ninth"):
        drawn((*STEP, Labelled("ninth", "ninth", "ninth")), {part.key: Look(GREY) for part in STEP})
