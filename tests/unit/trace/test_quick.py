"""Short cuts of the reader and of the command: what they give is what the long way gives."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bench.enlarge import enlarge

from tracelock.cli import build_app, main
from tracelock.trace import read_trace
from tracelock.trace.descriptions import descriptions
from tracelock.trace.events import event_decoder
from tracelock.trace.order import median

COLLECTIVE = {"Collective name": "allreduce", "In msg nelems": 8, "dtype": "Float", "Group size": 2}


def _described(events: list[dict[str, Any]]) -> list[dict[str, Any] | None]:
    text = json.dumps(events).encode()
    decoded = event_decoder(None).decode(text)
    found = descriptions(decoded, text)
    return [found.get(id(event)) for event in decoded]


def _event(**args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1, "args": args}


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"note": "Collective name"},
        {"note": 'a "Collective name" in a text'},
        {"note": "a { in a text"},
        {"note": {"nested": 1}},
        {"note": '"args": {'},
    ],
)
def test_each_event_gets_what_itself_says_of_its_collective(extra: dict[str, Any]) -> None:
    first, last = dict(COLLECTIVE), COLLECTIVE | {"Collective name": "broadcast", "In msg nelems": 9}
    plain = [_event(**extra), _event(**{"Collective name": None})]
    found = _described([*plain, _event(**first, **extra), *plain, _event(**extra, **last), *plain])
    assert found == [None, None, first, None, None, last, None, None]


@settings(deadline=None)
@given(st.lists(st.sampled_from(["none", "null", "word", "named"]), max_size=8))
def test_collectives_are_those_of_the_decoded_args(kinds: list[str]) -> None:
    args: dict[str, dict[str, Any]] = {
        "none": {"stream": 7},
        "null": {"Collective name": None},
        "word": {"x": "Collective name"},
        "named": COLLECTIVE,
    }
    expected = [COLLECTIVE if kind == "named" else None for kind in kinds]
    assert _described([_event(**args[kind]) for kind in kinds]) == expected


@settings(deadline=None)
@given(st.lists(st.integers(-(2**52), 2**52) | st.floats(-1e12, 1e12), min_size=1, max_size=9))
def test_the_median_is_numpys(values: list[float]) -> None:
    assert median(np.array(values)) == float(np.median(np.array(values)))


def _small(folder: Path) -> Path:
    times = [(10.5, "aten::add"), (20.25, "aten::mul")]
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": 2, "args": {"External id": n}}
        for n, (ts, name) in enumerate(times, 1)
    ]
    step = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#4", "pid": 1, "tid": 1, "ts": 9, "dur": 20}
    path = folder / "small.json.gz"
    with gzip.open(path, "wb") as out:
        out.write(json.dumps({"schemaVersion": 1, "traceEvents": [step, *events], "traceName": "]"}).encode())
    return path


def test_an_enlarged_trace_is_its_copies_one_after_another(tmp_path: Path) -> None:
    once, thrice = read_trace(_small(tmp_path)), tmp_path / "thrice.json"
    enlarge(tmp_path / "small.json.gz", thrice, 0.0013)
    trace = read_trace(thrice)
    assert trace.facts.quality == "complete"
    copies = len(trace.host) // len(once.host)
    assert copies > 1
    shift = 1000 * (11 + 1000)  # the span of whole microseconds, and the pause
    assert trace.host.start.tolist() == [
        time + copy * shift for copy in range(copies) for time in once.host.start.tolist()
    ]
    names = [trace.texts[name] for name in trace.host.name.tolist()]
    assert [name for name in names if name.startswith("ProfilerStep")] == [
        f"ProfilerStep#{4 + 5 * copy}" for copy in range(copies)
    ]


@pytest.mark.parametrize("words", [["--json"], []])
def test_the_short_way_to_analyze_says_what_the_parser_does(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, told = str(_small(tmp_path)), []
    for run in (lambda: main(["analyze", path, *words]), lambda: build_app(["analyze"])(["analyze", path, *words])):
        with pytest.raises(SystemExit) as ended:
            run()
        told.append((ended.value.code, capsys.readouterr()))
    assert told[0] == told[1]
    assert told[0][0] == 0


def test_an_absent_file_is_one_line_without_the_parser(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["analyze", str(tmp_path / "nowhere.json"), "--json"])
    error = capsys.readouterr().err
    assert ended.value.code == 2
    assert error.count("\n") == 1
    assert "nowhere.json" in error


def test_interrupting_is_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(request: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("tracelock.cli._analyze.run", interrupted)
    with pytest.raises(SystemExit) as ended:
        main(["analyze", str(_small(tmp_path))])
    assert ended.value.code == 130
    assert capsys.readouterr().err == "Aborted!\n"
