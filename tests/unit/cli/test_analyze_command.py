"""``tracelock analyze`` as a person meets it: answer, tables, JSON, CSV, several ranks, bad input."""

from __future__ import annotations

import csv
import json
import os
import pty
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracelock.analysis import document
from tracelock.cli import main
from tracelock.diagnosis import Diagnosed

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(name="run")
def _run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command in 80 columns and returns exit code, stdout and stderr."""

    def run(*words: str | Path, columns: int = 80) -> tuple[int, str, str]:
        monkeypatch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit) as ended:
            main(["analyze", *map(str, words)])
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return run


def event(name: str, category: str, start: float, duration: float, **args: Any) -> dict[str, Any]:
    lane = {"pid": 0, "tid": 7} if category in ("kernel", "gpu_memcpy") else {"pid": 99, "tid": 99}
    return {"ph": "X", "cat": category, "name": name, "ts": start, "dur": duration, "args": args} | lane


def document_of(rank: int = 0, late: float = 0) -> dict[str, Any]:
    """Return a trace of three steps of 1 ms: 400 µs of loading, 200 µs of computing, an all-reduce of 4 MB."""
    events = []
    for number in range(3):
        start = 1000.0 * number
        arrival = start + 700 + late
        events += [
            event(f"ProfilerStep#{number + 5}", "user_annotation", start, 1000),
            event("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "user_annotation", start, 400),
            event("aten::stack", "cpu_op", start + 10, 300),
            event("aten::[bold]mm[/bold]", "cpu_op", start + 450, 50),
            event("cudaLaunchKernel", "cuda_runtime", start + 460, 10, correlation=2 * number + 1),
            event("sm80_gemm<float>", "kernel", start + 480, 200, correlation=2 * number + 1, device=0, stream=7),
            event("cudaLaunchKernel", "cuda_runtime", arrival - 20, 10, correlation=2 * number + 2),
            event(
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                "kernel",
                arrival,
                start + 900 - arrival,
                correlation=2 * number + 2,
                device=0,
                stream=7,
                **{"Collective name": "allreduce", "In msg nelems": 10**6, "Group size": 2, "dtype": "Float"},
            ),
        ]
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "Test GPU", "totalGlobalMem": 2**34}],
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2},
        "traceEvents": events,
    }


@pytest.fixture(name="trace")
def _trace(tmp_path: Path) -> Path:
    return write(tmp_path / "trace.json", document_of())


def write(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


def test_the_answer_stands_first_and_figures_follow(run: Run, trace: Path) -> None:
    code, out, err = run(trace)
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert str(trace) in lines[0]
    assert "Test GPU" in lines[0]
    assert "loading" in " ".join(lines[2:4])
    assert any(line.startswith("step     1.00 ms") for line in lines[:8])
    for title in ("Where a step goes", "Steps", "GPU 0 over 3.00 ms", "Why GPU 0 was idle", "Operators", "Kernels"):
        assert any(line.startswith(title) for line in lines), title
    assert "Loading by main process" in out
    assert "all_reduce float32" in out


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_no_line_is_wider_than_the_terminal_and_no_figure_is_cut(run: Run, trace: Path, columns: int) -> None:
    _, out, _ = run(trace, columns=columns)
    lines = out.splitlines()[1:]  # the first holds the path, which is never broken
    assert max(map(len, lines)) <= columns
    assert "\x1b" not in out  # no colours without a terminal
    assert "600.0 µs" in next(line for line in lines if "sm80_gemm" in line)


def test_a_narrow_terminal_loses_columns_and_never_a_part_of_a_figure(run: Run, trace: Path) -> None:
    _, wide, _ = run(trace, columns=200)
    _, narrow, _ = run(trace, columns=46)
    whole = next(line.split() for line in wide.splitlines() if line.startswith("  sm80_gemm"))
    part = next(line.split() for line in narrow.splitlines() if line.startswith("  sm80_gemm"))
    assert len(part) < len(whole)
    assert part[1:] == whole[1 : len(part)]


def test_names_that_look_like_markup_are_shown_as_they_are(run: Run, trace: Path) -> None:
    assert "aten::[bold]mm[/bold]" in run(trace)[1]


def test_top_limits_ranked_tables_and_says_so(run: Run, trace: Path) -> None:
    _, out, _ = run(trace, "--top", "1")
    assert "Steps (the first 1 of 3; --top N shows more)" in out
    assert "sm80_gemm" in out
    assert "ncclDevKernel_AllReduce" not in out.partition("Kernels")[2].partition("\n\n")[0]


def test_one_step_alone(run: Run, trace: Path) -> None:
    code, out, _ = run(trace, "--step", "6")
    assert code == 0
    assert "ProfilerStep#6 alone" in out
    code, out, err = run(trace, "--step", "9")
    assert (code, out) == (2, "")
    assert err == f"tracelock: error: {trace}: step 9 is not in the trace (whole steps are 5, 6, 7)\n"


def test_json_is_one_document_that_can_be_read_back(run: Run, trace: Path) -> None:
    code, out, _ = run(trace, "--json")
    value = json.loads(out)
    assert (code, value["schema"]) == (0, "tracelock/analysis/1")
    found = document.decode(value, Diagnosed)
    assert found.trace.file == str(trace)
    assert found.findings[0].code == "dataloader-bound"
    assert found.step.mean_us == 1000


def test_json_of_several_files_is_a_document_a_line(run: Run, trace: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other.json", document_of(1))
    _, out, _ = run(trace, other, "--json")
    assert [json.loads(line)["trace"]["file"] for line in out.splitlines()] == [str(trace), str(other)]


def test_a_folder_of_tables(run: Run, trace: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out" / "deep"
    assert run(trace, "-o", folder)[0] == 0
    assert document.read(folder / "analysis.json", Diagnosed).step.count == 3
    with (folder / "steps.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["name"] for row in rows] == ["ProfilerStep#5", "ProfilerStep#6", "ProfilerStep#7"]
    assert float(rows[0]["breakdown_us.kernel"]) == 400
    with (folder / "kernels.csv").open(newline="") as stream:
        assert {row["name"]: row["calls"] for row in csv.DictReader(stream)}["sm80_gemm<float>"] == "3"
    assert "num_workers" in (folder / "findings.csv").read_text()


def test_a_folder_that_is_a_file_is_refused_before_anything_is_read(run: Run, trace: Path) -> None:
    code, out, err = run(trace, "-o", trace)
    assert (code, out) == (2, "")
    assert "-o takes a folder" in err


def test_ranks_are_compared(run: Run, trace: Path, tmp_path: Path) -> None:
    late = write(tmp_path / "late.json", document_of(1, late=150))
    folder = tmp_path / "out"
    code, out, err = run(trace, late, "-o", folder)
    assert (code, err) == (0, "")
    assert "rank 1 causes 100.0 % of that (last in 3 of 3 collectives)" in " ".join(out.split())
    assert "2 of 2 ranks (" in out
    assert "clocks brought together by the collectives" in " ".join(out.split())
    ranks = json.loads((folder / "ranks.json").read_text())
    assert ranks["schema"] == "tracelock/ranks/1"
    assert [each["waited_us"] for each in ranks["ranks"]] == [450, 0]
    assert (folder / "ranks.csv").is_file()
    assert document.read(folder / "late" / "analysis.json", Diagnosed).trace.rank == 1


def test_files_of_one_name_get_folders_of_their_own(run: Run, trace: Path, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    twin = write(tmp_path / "b" / "trace.json.gz", document_of(1))
    run(trace, twin, "-o", tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir() if path.is_dir()} == {"trace", "trace-2"}


def test_two_jobs_are_shown_one_after_the_other(run: Run, trace: Path, tmp_path: Path) -> None:
    code, out, err = run(trace, write(tmp_path / "twin.json", document_of()))
    assert code == 0
    assert out.count("Where a step goes") == 2
    assert err.startswith("tracelock: note: not compared as ranks of one job: ")


@pytest.mark.parametrize(
    ("content", "expected"), [(None, "does not exist"), (b"", "empty"), (b"a,b\n1,2\n", "trace"), (b"{}", "")]
)
def test_a_bad_file_gets_one_line_and_the_others_are_analysed(
    run: Run, trace: Path, tmp_path: Path, content: bytes | None, expected: str
) -> None:
    bad = tmp_path / "bad.json"
    if content is not None:
        bad.write_bytes(content)
    code, out, err = run(bad, trace)
    if content == b"{}":  # a trace that holds nothing is one, and says so
        assert code in (0, 2)
    else:
        assert code == 2
        assert err.startswith(f"tracelock: error: {bad}: ")
        assert expected in err
        assert err.count("\n") == 1
    assert "GPU 0 over 3.00 ms" in out


def test_a_folder_is_no_trace(run: Run, tmp_path: Path) -> None:
    code, out, err = run(tmp_path)
    assert (code, out) == (2, "")
    assert err.startswith(f"tracelock: error: {tmp_path}: ")
    assert err.count("\n") == 1


def test_json_stays_pure_beside_a_bad_file(run: Run, trace: Path, tmp_path: Path) -> None:
    code, out, _ = run(tmp_path / "absent.json", trace, "--json")
    assert code == 2
    assert [json.loads(line)["trace"]["file"] for line in out.splitlines()] == [str(trace)]


def test_settings_of_our_own_runs_are_used(run: Run, trace: Path) -> None:
    value = {"schema": "tracelock/run/1", "settings": {"num_workers": 0}, "profiled": {"trace": trace.name}}
    write(trace.parent / "run.json", value)
    assert json.loads(run(trace, "--json")[1])["settings"] == {"num_workers": 0}
    write(trace.parent / "run.json", {**value, "profiled": {"trace": "another.json"}})
    assert json.loads(run(trace, "--json")[1])["settings"] == {}


HEAVY = ("pandas", "scipy", "matplotlib", "torch", "duckdb", "jinja2", "yaml", "tracelock.study", "tracelock.report")


def test_nothing_heavy_is_imported(trace: Path, root: Path) -> None:
    script = (
        "import sys; from tracelock.cli import main\n"
        "try:\n    main(['analyze', sys.argv[1]])\nexcept SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(trace)],
        env={**os.environ, "PYTHONPATH": str(root / "scripts")},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stderr.split())
    assert "tracelock.analysis.analyze" in loaded
    assert not loaded & set(HEAVY)


def test_a_trace_of_a_megabyte_costs_less_than_a_second_and_a_half(root: Path, tmp_path: Path) -> None:
    """CPU time of the whole process, imports included: the machine may be busy with other things."""
    value = document_of()
    count = 1_000_000 // len(json.dumps(value["traceEvents"])) + 1
    value["traceEvents"] = [
        {**each, "ts": each["ts"] + 3000 * number, "args": {**each["args"], "Ev Idx": number}}
        for number in range(count)
        for each in value["traceEvents"]
    ]
    trace = write(tmp_path / "trace.json", value)
    assert trace.stat().st_size >= 1_000_000
    command = [sys.executable, "-c", "from tracelock.cli import main; main()", "analyze", str(trace)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PYTHONPATH": str(root / "scripts")}
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.5


@pytest.mark.parametrize("no_color", [False, True])
def test_colours_on_a_terminal_unless_they_are_not_wanted(trace: Path, root: Path, no_color: bool) -> None:
    out = on_terminal(trace, root, {"NO_COLOR": "1"} if no_color else {})
    assert "\x1b[1;31m" in out or no_color
    assert not no_color or "\x1b[1;31m" not in out


def on_terminal(trace: Path, root: Path, more: dict[str, str]) -> str:
    ours, theirs = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    environment |= {"PYTHONPATH": str(root / "scripts"), "TERM": "xterm-256color", "COLUMNS": "80", **more}
    command = [sys.executable, "-c", "from tracelock.cli import main; main()", "analyze", str(trace)]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        out = b""
        while True:
            try:
                piece = os.read(ours, 1 << 16)
            except OSError:
                break
            if not piece:
                break
            out += piece
    os.close(ours)
    assert process.returncode == 0
    return out.decode()
