"""Memory snapshots: plain data alone is read of a pickle, and what was held is what a replay from the start holds."""

from __future__ import annotations

import collections
import contextlib
import datetime
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracelock.analysis.snapshot import NO_STACK, read_snapshot
from tracelock.cli import main
from tracelock.errors import TracelockError
from tracelock.trace.pickled import read_plain_pickle

SCALARS = st.none() | st.booleans() | st.integers(-(2**200), 2**200) | st.floats(allow_nan=False) | st.text()
PLAIN = st.recursive(
    SCALARS | st.binary(max_size=300),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(), inner),
)
FAST = settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])


@FAST
@given(value=PLAIN, protocol=st.integers(3, pickle.HIGHEST_PROTOCOL))
def test_plain_data_comes_back_as_it_was(value: Any, protocol: int, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(pickle.dumps([value, value], protocol))
    assert read_plain_pickle(tmp_path / "x") == [value, value]


class _Runs:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.write_text, (Path("ran"), "this was run"))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    "value", [_Runs(), {"a": [_Runs()]}, print, datetime.timedelta(1), collections.OrderedDict(a=1), {1, 2}, 1j]
)
def test_anything_else_is_refused_and_never_run(
    value: Any, protocol: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").write_bytes(pickle.dumps(value, protocol))
    with pytest.raises(TracelockError) as told:
        read_plain_pickle(tmp_path / "x")
    assert len(told.value.problems) == 1
    assert not (tmp_path / "ran").exists()


@FAST
@given(place=st.floats(0, 1, exclude_max=True), what=st.binary(max_size=9))
def test_damage_is_one_line_or_other_plain_data(place: float, what: bytes, tmp_path: Path) -> None:
    data = pickle.dumps({"segments": [{"a": (1, 2.5, None)}] * 3, "x": ["text"] * 9, "n": 2**70})
    at = int(place * len(data))
    (tmp_path / "x").write_bytes(data[:at] + what + data[at + len(what) :])
    with contextlib.suppress(TracelockError):  # any other error fails
        read_plain_pickle(tmp_path / "x")


def _frames(name: str) -> list[dict[str, Any]]:
    inner = {"filename": "/env/site-packages/torch/nn/linear.py", "line": 1, "name": "forward"}
    return [inner, {"filename": f"/home/me/{name}.py", "line": 7, "name": "step"}]


def _write(path: Path, blocks: dict[int, tuple[int, str]], events: list[dict[str, Any]]) -> Path:
    """A snapshot of device 0 whose last blocks are `blocks`: bytes and place by address."""
    active = [
        {"address": at, "size": 512 * (size // 512 + 1), "requested_size": size, "state": "active_allocated",
         "frames": _frames(name)}
        for at, (size, name) in blocks.items()
    ]  # fmt: skip
    free = {"address": 9 << 20, "size": 4096, "requested_size": 0, "state": "inactive", "frames": []}
    segment = {"device": 0, "address": 0, "total_size": 1 << 20, "stream": 0, "blocks": [*active, free]}
    path.write_bytes(pickle.dumps({"segments": [segment], "device_traces": [events], "allocator_settings": {}}))
    return path


STEPS = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5000), st.sampled_from("abc")), max_size=40)


@FAST
@given(steps=STEPS, lost=st.integers(0, 40), fails=st.integers(0, 40))
def test_what_is_held_is_what_a_replay_holds(steps: list[Any], lost: int, fails: int, tmp_path: Path) -> None:
    """Allocate where nothing is, free where something is; the record loses its first events, as a ring does."""
    held: dict[int, tuple[int, str]] = {}
    events: list[dict[str, Any]] = []
    moments = [dict(held)]
    failed: dict[int, tuple[int, str]] = {}
    recorded: set[int] = set()  # addresses whose allocation is in the record
    for number, (at, size, name) in enumerate(steps):
        if number == fails:
            failed = dict(held)
            events.append({"action": "oom", "size": 77, "device_free": 5, "frames": []})
            moments.append(dict(held))
        if at in held:
            size, _ = held.pop(at)
            events.append({"action": "free_requested", "addr": at, "size": size, "frames": _frames("z")})
            moments.append(dict(held) | {at: (size, "")})
            events.append({"action": "free_completed", "addr": at, "size": size, "frames": _frames("z")})
        else:
            held[at] = (size, name)
            events.append({"action": "alloc", "addr": at, "size": size, "frames": _frames(name)})
        moments.append(dict(held))
    events, moments = events[lost:], moments[min(lost, len(events)) :]
    recorded |= {event["addr"] for event in events if event["action"] == "alloc"}
    (found,) = read_snapshot(_write(tmp_path / "x.pickle", held, events))
    assert found.end.bytes == sum(size for size, _ in held.values())
    assert {each.place.split("/")[-1]: each.bytes for each in found.end.holders} == {
        f"{name}.py:7 step": sum(size for size, other in held.values() if other == name)
        for name in {name for _, name in held.values()}
    }
    if found.peak is not None:
        assert found.peak.bytes == max(sum(size for size, _ in moment.values()) for moment in moments)
        assert sum(each.bytes for each in found.peak.holders) == found.peak.bytes
        if not lost:
            assert all(each.place != NO_STACK for each in found.peak.holders)
    if any(event["action"] == "oom" for event in events):
        (failure,) = found.failures
        assert failure.bytes == sum(size for size, _ in failed.values())
        assert (failure.asked_bytes, failure.free_bytes) == (77, 5)


def test_the_command_names_the_places_and_says_what_is_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _write(tmp_path / "x.pickle", {0: (3 << 20, "model"), 1: (1 << 20, "batch")}, [])
    for words in ([], ["--json"]):
        main_exit = pytest.raises(SystemExit)
        with main_exit as ended:
            main(["memory", str(path), *words])
        assert not ended.value.code
    told = capsys.readouterr().out
    text, _, document = told.partition("{")
    assert "3.0 MiB" in text
    assert "75.0 %" in text
    assert "model.py:7" in text
    assert "_record_memory_history" in text
    (device,) = json.loads("{" + document)["devices"]
    assert device["peak"] is None
    assert device["end"]["bytes"] == 4 << 20


def test_another_pickle_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(pickle.dumps({"weights": [1.0]}))
    with pytest.raises(TracelockError, match="no memory snapshot"):
        read_snapshot(tmp_path / "x")
