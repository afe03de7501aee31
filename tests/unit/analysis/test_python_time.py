"""Time in frames of Python: what it is, where, and whose line."""

from __future__ import annotations

from builders import frame, loading, make_trace, op, step

from tracelock.analysis.analyze import analyze
from tracelock.analysis.work import PythonTime
from tracelock.diagnosis import diagnose
from tracelock.trace import Trace

MS = 1_000_000


def trace() -> Trace:
    """Return four steps of 19 ms: 12 in the loader, 10 of them asleep in collate; 4 in a lock of the step's own."""
    host = []
    for number in range(4):
        at = 19 * MS * number
        host += [
            step(number, at, 19 * MS - 1),
            loading(at + 1000, 12 * MS),
            frame("train.py(7): my_collate", at + 2000, 11 * MS),
            frame("<built-in function sleep>", at + 3000, 10 * MS),
            op("aten::mm", at + 12 * MS + 2000, 3 * MS - 4000),
            frame("train.py(30): report", at + 15 * MS, 4 * MS),
            frame("threading.py(327): wait", at + 15 * MS + 1000, 4 * MS - 3000),
            frame("<built-in method acquire of _thread.lock object at 0x7f>", at + 15 * MS + 2000, 4 * MS - 5000),
        ]
    return make_trace(host=host)


def found() -> tuple[PythonTime, ...]:
    work = analyze(trace()).work
    assert work is not None
    return work.python or ()


def test_waiting_is_named_by_kind_place_and_line() -> None:
    told = {(each.kind, each.place, each.code): round(each.host_us) for each in found()}
    assert told["sleep", "collate", "train.py(7): my_collate"] == 10_000
    assert abs(told["lock", "step", "train.py(30): report"] - 3_997) <= 2


def test_the_answer_names_both_lines() -> None:
    findings = diagnose(analyze(trace())).findings
    titles = {finding.code: finding.title for finding in findings}
    assert "collate sleeps at train.py(7): my_collate" in titles["dataloader-bound"]
    assert "waits for a lock" in titles["python-time"]
    assert "train.py(30): report" in titles["python-time"]
    assert "step-gaps" not in titles


def test_without_frames_nothing_is_claimed() -> None:
    plain = make_trace(
        host=[row for at in range(3) for row in (step(at, at * MS, MS - 1), op("aten::mm", at * MS, 10))]
    )
    work = analyze(plain).work
    assert work is not None
    assert work.python is None
