"""``tracelock analyze`` on files that are another tool's, or no trace: whose they are, and no verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tracelock.cli import build_app


def run(path: Path, document: Any, *options: str) -> tuple[int, str]:
    path.write_text(json.dumps(document))
    result = CliRunner().invoke(build_app(["analyze"]), ["analyze", *options, str(path)])
    return result.exit_code, result.output


def row(name: str, ts: Any, dur: float, pid: Any = 1, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": 1} | more


def process(pid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}


ASCEND = [
    process(4, "Ascend Hardware"),
    row("ProfilerStep#3", "1695204034000.123", 90_000, cat="cpu_op"),
    *(row(f"aten::op{n}", f"{1695204034010 + 100 * n}.123", 20, cat="cpu_op") for n in range(40)),
    *(row("MatMulV2", f"{1695204034100 + 100 * n}.5", 70, 4, args={"Task Type": "AI_CORE"}) for n in range(40)),
]
JAX = [process(1, "/device:GPU:0"), process(7, "/host:CPU"), *(row("fusion", 9 * n, 5) for n in range(3000))]
CHROME = [process(1, "Browser"), process(2, "GPU Process"), row("Swap", 1, 2, 2, cat="cc")]
CHROME += [row("RunTask", 9 * n, 5, cat="cc") for n in range(3000)]
UNKNOWN = [row("compile", 900 * n, 500, cat="build") for n in range(300)]


@pytest.mark.parametrize(
    ("rows", "whose"),
    [
        (ASCEND, "the file is of Ascend's profiler"),
        (JAX, "the file is of JAX or TensorFlow"),
        (CHROME, "the file is of Chrome's own tracing"),
        (UNKNOWN, "the rows are of unknown origin"),
    ],
    ids=["Ascend", "JAX", "Chrome", "unknown"],
)
def test_no_verdict_of_other_tools_rows(tmp_path: Path, rows: list[Any], whose: str) -> None:
    code, text = run(tmp_path / "x.json", {"traceEvents": rows}, "--json")
    assert code == 0
    document = json.loads(text)
    (finding,) = document["findings"]
    assert (finding["confidence"], finding["code"]) == ("low", "no-bottleneck")
    assert document["verdict"] == f"No verdict: {whose}."


def test_a_pytorch_file_without_events_is_refused(tmp_path: Path) -> None:
    code, text = run(tmp_path / "x.json", {"schemaVersion": 1, "deviceProperties": []})
    assert code == 2
    assert "no list 'traceEvents'" in text
    assert "cut off" not in text
