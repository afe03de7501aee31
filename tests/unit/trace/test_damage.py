"""Every kind of damage: what can be read is read, what is mended or lost is counted, and nothing else changes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from trace_files import LAYOUTS, counts, document, events, kernel, names, op, read_text, render
from trace_twin import rows_of, rows_read

from tracelock.errors import TracelockError
from tracelock.trace import Trace, walk

few = settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
)
COUNT = 60


@pytest.fixture(autouse=True)
def small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a unit be some ten events, so that damage lies at its ends and in its middle."""
    monkeypatch.setattr(walk, "UNIT", 2000)


Damage = Callable[[str], str]


def in_name(text: str) -> Damage:
    """Return a damage that puts raw text into the name of an event."""
    return lambda event: re.sub(r"(aten::op|kernel)(?=\d)", lambda match: match.group() + text, event, count=1)


def value(key: str, text: str) -> Damage:
    """Return a damage that replaces the value of a key by raw text."""
    return lambda event: re.sub(rf'("{key}": )[^,\n}}]+', lambda match: match.group(1) + text, event, count=1)


# Damage of the text of an event, the warnings it makes, and whether the event is kept.
MENDED: dict[str, tuple[Damage, str]] = {
    "NaN": (value("External id", "NaN"), "bad-number"),
    "Infinity": (value("External id", "-Infinity"), "bad-number"),
    "inf": (value("External id", "inf"), "bad-number"),
    "nan(ind)": (value("External id", "-nan(ind)"), "bad-number"),
    "N/A": (value("External id", "N/A"), "bad-number"),
    "leading zeros": (value("External id", "007"), "bad-number"),
    "plus sign": (value("External id", "+7"), "bad-number"),
    "1e999": (value("External id", "1e999"), "huge-number"),
    "beyond 64 bits": (value("External id", "98765432109876543210987"), "huge-number"),
    "5000 digits": (value("External id", "9" * 5000), "huge-number"),
    "Windows path": (in_name(r"C:\Users\me\x.py(3): f"), "bad-escape"),
    "bad unicode escape": (in_name(r"\u12!"), "bad-escape"),
    "hex escape": (in_name(r"\x41"), "bad-escape"),
    "lone surrogate": (in_name(r"\ud800"), "lone-surrogate"),
    "lone low surrogate": (in_name(r"\udc00!"), "lone-surrogate"),
    "control character": (in_name("\x01"), "control-character"),
    "raw tab": (in_name("\t"), "control-character"),
    "raw newline": (in_name("\n"), "control-character"),
    "quotes": (in_name('f("x")'), "bare-quote"),
    "quotes and commas": (in_name('f("x", "y")'), "bare-quote"),
    "text as ts": (value("ts", '"1234.5"'), "text-timestamp"),
    "list as args": (lambda event: re.sub(r'"args": \{[^{}]*\}', '"args": [1, 2]', event, flags=re.DOTALL), "odd-args"),
    "text as args": (lambda event: re.sub(r'"args": \{[^{}]*\}', '"args": "none"', event, flags=re.DOTALL), "odd-args"),
    "no name": (lambda event: re.sub(r'"name": "[^"]*",', "", event), "no-name"),
    "name is null": (value("name", "null"), "no-name"),
    "trailing comma inside": (lambda event: re.sub(r"\}(\s*)$", r",}\1", event), "bad-punctuation"),
}
LOST: dict[str, tuple[Damage, str]] = {
    "no ts": (lambda event: re.sub(r'"ts": \d+,', "", event), "no-timestamp"),
    "ts is no number": (value("ts", '"soon"'), "no-timestamp"),
    "ts is NaN": (value("ts", "NaN"), "no-timestamp"),
    "no dur": (lambda event: re.sub(r'"dur": \d+,?', "", event), "no-duration"),
    "dur is null": (value("dur", "null"), "no-duration"),
    "negative dur": (value("dur", "-5"), "negative-duration"),
    "no phase": (lambda event: event.replace('"ph": "X",', ""), "not-an-event"),
    "unknown phase": (lambda event: event.replace('"ph": "X"', '"ph": "?"'), "not-an-event"),
    "a number": (lambda event: "17", "not-an-event"),
    "null": (lambda event: "null", "not-an-event"),
    "a list": (lambda event: "[1, {}]", "not-an-event"),
    "a text": (lambda event: '"event"', "not-an-event"),
    "garbage": (lambda event: "{ #!? }", "unreadable-event"),
    "brace missing": (lambda event: event.rstrip()[:-1], "unreadable-event"),
    "year 3000": (value("ts", "32503680000000000"), "far-away"),
    "ts beyond int64 ns": (value("ts", "9.2e+18"), "far-away"),
    "lasts for years": (value("dur", "99999999999999"), "far-away"),
}


def damaged(kind: Damage, places: list[int], layout: str) -> str:
    """Return a trace whose events at `places` are damaged."""
    rendered = [render(event, layout) for event in events(COUNT)]
    for place in places:
        rendered[place] = kind(rendered[place])
    return document(rendered, layout)


def others_are_whole(trace: Trace, places: list[int]) -> None:
    """Assert that every event elsewhere than at `places` was read unchanged."""
    expected = rows_of([event for place, event in enumerate(events(COUNT)) if place not in places])
    read = rows_read(trace)
    for table, rows in expected.items():
        assert not rows - read[table], table


places_in_a_trace = st.lists(st.integers(0, COUNT - 1), min_size=1, max_size=5, unique=True)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", MENDED)
@few
@given(places=places_in_a_trace)
def test_a_mended_event_is_kept_and_counted(tmp_path: Path, name: str, layout: str, places: list[int]) -> None:
    damage, code = MENDED[name]
    trace = read_text(tmp_path, damaged(damage, places, layout))
    assert len(trace.host) + len(trace.device) == COUNT
    assert trace.facts.events == COUNT
    assert trace.facts.quality == "salvaged"
    assert set(counts(trace)) == {code}
    assert counts(trace)[code] >= len(places)
    others_are_whole(trace, places)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", LOST)
@few
@given(places=places_in_a_trace)
def test_a_lost_event_is_counted_and_costs_no_other(tmp_path: Path, name: str, layout: str, places: list[int]) -> None:
    damage, code = LOST[name]
    trace = read_text(tmp_path, damaged(damage, places, layout))
    assert counts(trace).get(code) == len(places)
    assert set(counts(trace)) <= {code, "bad-number"}
    assert len(trace.host) + len(trace.device) == COUNT - len(places)
    assert trace.facts.events == COUNT
    assert trace.facts.quality == "salvaged"
    others_are_whole(trace, places)


@pytest.mark.parametrize("layout", LAYOUTS)
@few
@given(data=st.data())
def test_a_file_may_end_anywhere(tmp_path: Path, layout: str, data: st.DataObject) -> None:
    text = document([render(event, layout) for event in events(COUNT)], layout)
    first = text.index("[\n") + 1
    stop = data.draw(st.integers(first, len(text) - 1))
    trace = read_text(tmp_path, text[:stop])
    whole = sum(text[:stop].count(mark) for mark in ("aten::op", '"name": "kernel'))
    read = len(trace.host) + len(trace.device)
    assert whole - 1 <= read <= whole
    assert trace.facts.quality == "partial"
    assert counts(trace) == {"cut-off": 1}
    expected, got = rows_of(events(COUNT)), rows_read(trace)
    assert all(not got[table] - expected[table] for table in got)
    assert trace.facts.schema_version == 1


@pytest.mark.parametrize("layout", LAYOUTS)
@few
@given(junk=st.binary(min_size=1, max_size=40), place=st.integers(0, COUNT - 2))
def test_overwritten_bytes_cost_two_events_at_most(tmp_path: Path, layout: str, junk: bytes, place: int) -> None:
    rendered = [render(event, layout).encode() for event in events(COUNT)]
    text = document(["%%%"] + [b.decode() for b in rendered], layout).encode()
    whole = text.replace(b"%%%" + (b", " if layout == "compact" else b",\n"), b"")
    start = whole.index(rendered[place]) + len(rendered[place]) // 2
    overwritten = whole[:start] + junk + whole[start + len(junk) :]
    trace = read_text(tmp_path, overwritten)
    read, expected = rows_read(trace), rows_of(events(COUNT))
    lost = sum(sum((expected[table] - read[table]).values()) for table in expected)
    assert lost <= 2
    assert trace.facts.quality != "partial" or b'"' in junk or b"]" in junk
    assert trace.facts.warnings or is_json(overwritten)


def is_json(text: bytes) -> bool:
    """Return whether a text is still JSON, save for bytes in keys that nobody knows: then no change can be seen."""
    try:
        json.loads(text.decode("utf-8", "replace"))
    except ValueError:
        return False
    return True


def test_bytes_that_are_not_utf8_are_replaced(tmp_path: Path) -> None:
    text = document([render(op(0, name="sgemm_%%kernel"), "kineto"), render(op(1), "kineto")], "kineto")
    trace = read_text(tmp_path, text.encode().replace(b"%%", b"\xff\xfe"))
    assert "sgemm_\ufffd\ufffdkernel" in names(trace)
    assert counts(trace) == {"not-utf8": 1}


def test_bytes_that_are_not_utf8_in_shapes_or_stacks_are_replaced(tmp_path: Path) -> None:
    event = op(0, args={"Call stack": "a%%b", "Input type": ["%%"]})
    trace = read_text(tmp_path, document([render(event, "kineto")], "kineto").encode().replace(b"%%", b"\xff"))
    assert trace.texts[trace.host.stack[0]] == "a\ufffdb"
    assert counts(trace) == {"not-utf8": 2}


@pytest.mark.parametrize(
    ("mark", "expected"),
    [
        (r"C:\Users\me\x.py(3): f", r"C:\Users\me\x.py(3): f"),
        (r"\ud83d\ude00", "😀"),
        (r"\ud800x", "\ufffdx"),
        ('say "hi"', 'say "hi"'),
        ('f("x", "y")', 'f("x", "y")'),
        ("a\tb", "a\tb"),
        ("a\x01b", "a\x01b"),
        ("<lambda>}, {", "<lambda>}, {"),
        ("]}", "]}"),
        ("\\\\server\\", "\\server\\"),
    ],
)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_names_are_read_as_they_were_meant(tmp_path: Path, mark: str, expected: str, layout: str) -> None:
    rendered = [render(event, layout) for event in events(30)]
    rendered[7] = rendered[7].replace("aten::op7", mark)
    trace = read_text(tmp_path, document(rendered, layout))
    assert names(trace) == {e["name"] for e in events(30)} - {"aten::op7"} | {expected}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_missing_and_a_doubled_comma_between_events(tmp_path: Path, layout: str) -> None:
    rendered = [render(event, layout) for event in events(30)]
    between = ", " if layout == "compact" else ",\n"
    text = document(rendered, layout)
    broken = text.replace(rendered[4] + between, rendered[4] + "\n").replace(
        rendered[20] + between, rendered[20] + ",,"
    )
    trace = read_text(tmp_path, broken)
    others_are_whole_of(trace, events(30))
    assert counts(trace) == {"bad-punctuation": 2}


def others_are_whole_of(trace: Trace, expected: list[dict[str, Any]]) -> None:
    """Assert that a trace has exactly these events."""
    assert rows_read(trace) == rows_of(expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_comma_after_the_last_event(tmp_path: Path, layout: str) -> None:
    text = document([render(event, layout) for event in events(30)], layout).replace("\n], ", ",\n], ")
    trace = read_text(tmp_path, text)
    others_are_whole_of(trace, events(30))
    assert counts(trace) == {"bad-punctuation": 1}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_repeated_lists_of_events_are_all_read(tmp_path: Path, layout: str) -> None:
    rendered = [render(event, layout) for event in events(30)]
    tail = {"note": '"traceEvents": [', "other": {"traceEvents": []}}
    first = document(rendered[:20], layout, tail=tail)
    second = document(rendered[20:], layout)
    trace = read_text(tmp_path, first[:-1] + ", " + second[1:])
    others_are_whole_of(trace, events(30))
    assert counts(trace) == {"repeated-events": 1}
    assert trace.facts.base_time_ns == 1_700_000_000_000_000_000


def test_events_missing_or_empty(tmp_path: Path) -> None:
    for head in ({"schemaVersion": 1, "deviceProperties": []}, {"schemaVersion": 1, "traceEvents": None}):
        with pytest.raises(TracelockError, match="keys of a PyTorch trace, but no list 'traceEvents'"):
            read_text(tmp_path, json.dumps(head))
    empty = read_text(tmp_path, json.dumps({"schemaVersion": 1, "traceEvents": []}))
    assert (empty.facts.quality, counts(empty)) == ("complete", {"empty-events": 1})


def test_a_head_that_is_cut_off(tmp_path: Path) -> None:
    trace = read_text(tmp_path, '{"schemaVersion": 1, "deviceProperties": [{"id": 0, "na')
    assert counts(trace) == {"cut-off": 1, "no-events": 1}
    assert trace.facts.schema_version == 1


def test_damaged_metadata_costs_no_event(tmp_path: Path) -> None:
    text = document([render(event, "kineto") for event in events(5)], "kineto")
    trace = read_text(tmp_path, text.replace('"Test GPU"', '"C:\\Users"').replace('"x.json"', "NaN"))
    others_are_whole_of(trace, events(5))
    assert counts(trace) == {"bad-escape": 1, "bad-number": 1}
    assert trace.facts.devices[0].name == "C:\\Users"


def test_unreadable_metadata_is_counted_by_member(tmp_path: Path) -> None:
    text = document([render(event, "kineto") for event in events(5)], "kineto")
    trace = read_text(tmp_path, text.replace('"x.json"', "{what}"))
    others_are_whole_of(trace, events(5))
    assert counts(trace) == {"bad-metadata": 1}
    assert (trace.facts.schema_version, trace.facts.base_time_ns) == (1, 1_700_000_000_000_000_000)


def test_text_after_the_end_is_counted(tmp_path: Path) -> None:
    text = document([render(event, "kineto") for event in events(5)], "kineto")
    trace = read_text(tmp_path, text + " more ")
    assert counts(trace) == {"trailing-data": 4}
    bare = read_text(tmp_path, json.dumps(events(5)) + "xyz")
    assert counts(bare) == {"trailing-data": 3}


def test_categories_that_nobody_knows_are_kept(tmp_path: Path) -> None:
    strange = [op(number, cat=f"strange{number}") for number in range(600)]
    trace = read_text(tmp_path, json.dumps({"traceEvents": strange}))
    assert len(trace.host) == 600
    assert trace.facts.quality == "complete"


def test_odd_types_of_ids_cost_only_the_ids(tmp_path: Path) -> None:
    odd = [
        kernel(1, args={"device": "0", "stream": "7", "correlation": "12", "External id": 3.0, "bytes": "4096"}),
        kernel(2, args={"device": None, "stream": [1], "correlation": {"a": 1}, "External id": 2**70, "bytes": True}),
        kernel(3, pid=0.0, tid="7"),
    ]
    trace = read_text(tmp_path, json.dumps({"traceEvents": odd}))
    device = trace.device
    assert device.device.tolist() == [0, 0, 0]
    assert device.stream.tolist() == [7, -1, 7]
    assert device.correlation.tolist() == [12, -1, 3]
    assert device.external.tolist() == [3, -1, 3]
    assert device.bytes.tolist()[0] == 4096
    assert set(device.track.tolist()) == {0}
    assert counts(trace) == {"odd-args": 1, "huge-number": 1}


def test_an_event_larger_than_a_unit_is_one_event(tmp_path: Path) -> None:
    inner = [{"ph": "X", "name": "no event", "ts": 1, "dur": 1, "pid": 1, "tid": 1}] * 2000
    large = op(1, args={"list": inner, "External id": 5})
    for layout in LAYOUTS:
        trace = read_text(
            tmp_path, document([render(op(0), layout), render(large, layout), render(op(2), layout)], layout)
        )
        assert trace.host.external.tolist() == [0, 5, 2]
        assert trace.facts.warnings == ()
