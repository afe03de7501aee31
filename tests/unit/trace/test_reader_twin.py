"""The fast reader against a slow, obvious one, on every real trace and every way in which a trace can be laid out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from trace_twin import load, rows_of, rows_read

from tracelock.trace import Trace, read_trace

TRACES = Path(__file__).resolve().parents[4] / "shared" / "traces"
NAMES = sorted(path.name for path in TRACES.glob("*.json.gz")) or ["(none)"]


def same(trace: Trace, document: object) -> None:
    """Assert that a trace has the rows of a document."""
    read, expected = rows_read(trace), rows_of(document)
    for table, rows in expected.items():
        missing, surplus = rows - read[table], read[table] - rows
        assert not missing, (table, next(iter(missing.items())), next(iter(surplus.items()), None))
        assert not surplus, (table, next(iter(surplus.items())))


@pytest.mark.parametrize("name", NAMES)
def test_reads_every_row_of_a_real_trace(shared: Path, name: str) -> None:
    path = shared / "traces" / name
    trace = read_trace(path)
    document = load(path)
    same(trace, document)
    events = document if isinstance(document, list) else document["traceEvents"]
    assert trace.facts.events == len(events)
    assert trace.facts.quality == "complete"
    assert [warning.code for warning in trace.facts.warnings] in ([], ["unknown-origin"])


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_in_order_of_start_and_longest_first(shared: Path, name: str) -> None:
    trace = read_trace(shared / "traces" / name)
    for table in (trace.host, trace.device):
        step = np.diff(table.start)
        assert (step >= 0).all()
        assert (np.diff(table.duration)[step == 0] <= 0).all()
    for times in (trace.memory.time, trace.flows.time):
        assert (np.diff(times) >= 0).all()


@pytest.mark.parametrize("layout", [{}, {"indent": 0}, {"indent": 1}, {"indent": 2}, {"separators": (",", ":")}])
@pytest.mark.parametrize("name", ["tracelens-h100-bert.json.gz", "hta-mi250-train.json.gz", "switch-a100.json.gz"])
def test_the_layout_of_the_json_does_not_matter(shared: Path, tmp_path: Path, name: str, layout: dict) -> None:
    document = load(shared / "traces" / name)
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(document, default=float, **layout))
    trace = read_trace(path)
    same(trace, document)
    assert trace.facts.quality == "complete"


@pytest.mark.parametrize("name", ["tracelens-h100-bert.json.gz", "hta-nccl.json.gz"])
def test_a_bare_list_of_events_is_a_trace(shared: Path, tmp_path: Path, name: str) -> None:
    events = load(shared / "traces" / name)["traceEvents"]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(events, default=float))
    same(read_trace(path), events)
