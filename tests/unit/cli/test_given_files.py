"""What is given in the place of a file: standard input, and addresses, which are not fetched."""

from __future__ import annotations

import gzip
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import tracelock
from tracelock.cli import main

COMMAND = [sys.executable, "-m", "tracelock.cli", "analyze"]
TRACE = {
    "schemaVersion": 1,
    "traceEvents": [
        row
        for step in range(4)
        for row in (
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": 1000.0 * step, "dur": 1000.0,
             "pid": 9, "tid": 9},
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1000.0 * step + 5, "dur": 900.0, "pid": 9, "tid": 9},
        )
    ],
}  # fmt: skip


def analyze(*words: str, data: bytes = b"", cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    variables = {**os.environ, "PYTHONPATH": str(Path(tracelock.__file__).parents[1])}
    return subprocess.run([*COMMAND, *words], input=data, capture_output=True, env=variables, cwd=cwd, check=False)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_standard_input_is_analysed_like_the_file(tmp_path: Path, pack) -> None:
    data = pack(json.dumps(TRACE).encode())
    (tmp_path / "trace.json").write_bytes(data)
    (tmp_path / "run.json").write_text("{}")
    piped, named = (json.loads(analyze(*words, data=data, cwd=tmp_path).stdout) for words in
                    (["-", "--json"], ["trace.json", "--json"]))  # fmt: skip
    assert piped["trace"].pop("file") == "stdin"
    assert named["trace"].pop("file") == "trace.json"
    assert piped == named
    assert piped["step"]["count"] == 4


@pytest.mark.parametrize(
    ("data", "told"), [(b"", "tracelock: error: stdin: is empty"), (b"nonsense", "tracelock: error: stdin: ")]
)
def test_what_is_no_trace_is_told_of_standard_input_and_not_of_our_own_file(data: bytes, told: str) -> None:
    done = analyze("-", data=data)
    assert done.returncode == 2
    assert done.stderr.decode().startswith(told)
    assert "/tracelock-" not in done.stderr.decode()


def test_a_terminal_is_not_waited_for() -> None:
    ours, theirs = pty.openpty()
    variables = {**os.environ, "PYTHONPATH": str(Path(tracelock.__file__).parents[1])}
    done = subprocess.run([*COMMAND, "-"], stdin=theirs, capture_output=True, env=variables, timeout=60, check=False)
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 2
    assert b"stdin: is a terminal, expected a trace" in done.stderr


@pytest.mark.parametrize("address", ["https://example.com/runs/7/trace.json.gz?token=a", "s3://bucket/trace.json"])
@pytest.mark.parametrize("words", [["analyze"], ["report"], ["slim"], ["query"], ["compare"]])
def test_an_address_is_printed_whole_and_not_fetched(capsys, words: list[str], address: str) -> None:
    more = {"slim": ["out.json"], "query": ["select 1"], "compare": [address]}.get(words[0], [])
    with pytest.raises(SystemExit) as ended:
        main([words[0], address, *more])
    assert ended.value.code == 2
    assert f"tracelock: error: {address}: is an address; addresses are not fetched" in capsys.readouterr().err
