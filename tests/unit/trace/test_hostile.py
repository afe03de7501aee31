"""Whatever is in a file, reading it ends with a trace or one clear line, and every event is accounted for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trace_files import LAYOUTS, counts, document, events, names, op, read_text, render

from tracelock.errors import TracelockError
from tracelock.trace import Trace, read_trace, walk
from tracelock.trace.tally import KINDS

ROWS = 24
TEXTS = [document([render(event, layout) for event in events(ROWS)], layout).encode() for layout in LAYOUTS]
PIECES = [
    *(b'" { } [ ] , : \\ \n - null NaN 1e999 \\ud800 \\u },\n_{ }, { "traceEvents":_['.replace(b"_", b" ").split(b" ")),
    b"\xff",
    b"\x00",
    b"9" * 30,
    b'{"ph": "X"}',
    b'"traceEvents": [',
    b"},\n  {",
]

# Codes of events that are in no table; all others are about events that are, or about the file.
LEFT_OUT = {
    "not-an-event",
    "unreadable-event",
    "no-timestamp",
    "unpaired-begin-end",
    "no-duration",
    "negative-duration",
    "impossible-duration",
    "zero-timestamp",
    "far-away",
}


def accounted_for(trace: Trace) -> int:
    """Return the events that are in a table, or counted as left out."""
    tables = sum(map(len, (trace.host, trace.device, trace.memory, trace.flows)))
    left_out = sum(count for code, count in counts(trace).items() if code in LEFT_OUT)
    return tables + left_out + sum(trace.facts.unused.values())


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Return a trace with pieces put in, taken out, overwritten and repeated."""
    text = bytearray(draw(st.sampled_from(TEXTS)))
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.integers(0, len(text)))
        length = draw(st.integers(0, 60))
        piece = draw(st.one_of(st.sampled_from(PIECES), st.binary(max_size=20)))
        change = draw(st.sampled_from(("insert", "overwrite", "delete", "repeat")))
        if change == "insert":
            text[place:place] = piece
        elif change == "overwrite":
            text[place : place + len(piece)] = piece
        elif change == "delete":
            del text[place : place + length]
        else:
            text[place:place] = text[length * 20 : length * 40]
    return bytes(text)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=damaged())
def test_any_damage_ends_in_a_trace_or_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    monkeypatch.setattr(walk, "UNIT", 1500)
    try:
        trace = read_text(tmp_path, text)
    except TracelockError:
        return
    assert accounted_for(trace) == trace.facts.events
    assert all(warning.code in KINDS and warning.count > 0 for warning in trace.facts.warnings)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    junk=st.one_of(
        st.binary(max_size=300), st.text(max_size=200).map(str.encode), st.from_type(dict).map(repr).map(str.encode)
    )
)
def test_any_file_ends_in_a_trace_or_one_line(tmp_path: Path, junk: bytes) -> None:
    with pytest.raises(TracelockError):
        read_text(tmp_path, junk)


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=8,
)
keys = st.sampled_from(["ph", "cat", "name", "ts", "dur", "pid", "tid", "args", "id", "x"])
phases = st.sampled_from(list("XXXXsfiMCBE?"))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    odd=st.lists(st.tuples(phases, st.dictionaries(keys, json_values, max_size=6)), min_size=1, max_size=12),
    sound=st.integers(1, 4),
)
def test_events_of_any_types_cost_no_other(
    tmp_path: Path, odd: list[tuple[str, dict[str, object]]], sound: int
) -> None:
    rows: list[object] = [{"ph": phase} | event for phase, event in odd]
    rows += [op(1000 + number) for number in range(sound)]
    trace = read_text(tmp_path, json.dumps({"traceEvents": rows}))
    assert trace.facts.events == len(rows)
    assert accounted_for(trace) == len(rows)
    assert {f"aten::op{1000 + number}" for number in range(sound)} <= names(trace)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"traceEvents":' + "[" * 100_000,
        '{"traceEvents":[{"ph":"X","args":' + '{"a":' * 50_000 + "1" + "}" * 50_000 + "}]}",
    ],
)
def test_deep_nesting_is_no_event(tmp_path: Path, text: str) -> None:
    try:
        trace = read_text(tmp_path, text)
    except TracelockError:
        return
    assert len(trace.host) == 0
    assert trace.facts.quality != "complete"


def test_deep_nesting_costs_only_its_event(tmp_path: Path) -> None:
    deep = json.dumps(op(1)).replace("[[4, 4]]", "[" * 3000 + "]" * 3000)
    trace = read_text(tmp_path, f'{{"traceEvents": [{json.dumps(op(0))}, {deep}, {json.dumps(op(2))}]}}')
    assert names(trace) == {"aten::op0", "aten::op2"}
    assert counts(trace) == {"unreadable-event": 1}


def test_of_a_repeated_key_the_last_one_counts(tmp_path: Path) -> None:
    event = json.dumps(op(1))
    twice = event.replace('"cat": "cpu_op"', '"cat": "what", "cat": "cpu_op"').replace('"ts"', '"ts": [1], "ts"')
    trace = read_text(tmp_path, f'{{"traceEvents": [{twice}, {event}]}}')
    assert trace.host.start.tolist() == [1_010_000, 1_010_000]
    assert trace.host.kind.tolist() == [0, 0]


def test_every_event_of_every_real_trace_is_accounted_for(shared: Path) -> None:
    for folder in ("traces", "damaged"):
        for path in sorted((shared / folder).glob("*.json*")):
            if path.stat().st_size and path.name != "10_no_traceEvents.json":
                trace = read_trace(path)
                assert accounted_for(trace) == trace.facts.events, path.name


def test_the_profilers_own_window_is_told(shared: Path) -> None:
    facts = read_trace(shared / "traces" / "hta-nccl.json.gz").facts
    ((start, end),) = facts.windows
    assert start < end
    assert facts.unused == {"M": 38, "X": 1, "i": 2}
