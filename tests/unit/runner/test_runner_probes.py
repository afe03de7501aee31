"""Samples: two ways of reading the machine agree, and GPUs are read as NVML and nvidia-smi tell it."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tracelock.runner import probes
from tracelock.runner.gpu_probes import GPU_COLUMNS, NvidiaSmiProbe, NvmlProbe, gpu_probe, smi_values, throttle_words
from tracelock.runner.gpus import Gpu
from tracelock.runner.probes import HOST_COLUMNS, ProcProbe, PsutilProbe, descendants, host_probe
from tracelock.runner.sampler import Sampler

linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system has no /proc")


@pytest.fixture
def family() -> Any:
    """Return a child of this process that has a child of its own and about 60 MB."""
    code = "import os; b = bytearray(60 * 2**20); os.fork(); os.write(1, b'x'); os.read(0, 1)"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.read(2) == b"xx"  # type: ignore[union-attr]
    yield process
    process.kill()
    process.communicate()


@linux
def test_psutil_and_proc_tell_the_same(family: subprocess.Popen[bytes]) -> None:
    pytest.importorskip("psutil")
    both = [PsutilProbe(), ProcProbe()]  # counted in ticks of 10 ms each process; what other tests left may work on
    ended = time.monotonic() + 0.4
    while time.monotonic() < ended:
        pass
    readings = [dict(zip(HOST_COLUMNS, probe.read(), strict=True)) for probe in both]
    children = [[int(size) for size in str(reading["children_rss_bytes"]).split()] for reading in readings]
    assert children[0] == pytest.approx(children[1], rel=0.02)
    assert len(children[0]) >= 2
    assert max(children[0]) > 60 * 2**20
    assert readings[0]["rss_bytes"] == pytest.approx(readings[1]["rss_bytes"], rel=0.02)
    assert readings[0]["cpu_percent"] == pytest.approx(readings[1]["cpu_percent"], abs=15)
    assert readings[0]["process_cpu_percent"] == pytest.approx(readings[1]["process_cpu_percent"], abs=25)
    assert readings[0]["load_1m"] == readings[1]["load_1m"]


@linux
@pytest.mark.parametrize("probe", [PsutilProbe, ProcProbe])
@pytest.mark.parametrize("asked", ["own", "other"])
def test_what_was_used_before_the_probe_was_made_is_not_counted(probe: Any, asked: str) -> None:
    """A child that burnt seconds of CPU before the first sample once made thousands of percent of it."""
    pytest.importorskip("psutil")
    code = """
import os, time
while sum(os.times()[:2]) < 2: pass
print(flush=True)
input()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        made = probe() if asked == "own" else probe(process.pid)
        time.sleep(0.2)
        percent = made.read()[probe.columns.index("process_cpu_percent")]
        process.communicate("\n")
    assert percent < 500  # 2 s in 0.2 s would be 1,000


@linux
@pytest.mark.parametrize("probe", [PsutilProbe, ProcProbe])
def test_a_process_that_one_sample_missed_is_not_counted_from_its_start(
    probe: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("psutil")
    code = "import os, time\nwhile sum(os.times()[:2]) < 2: pass\nprint(flush=True)\ninput()"
    column = probe.columns.index("process_cpu_percent")
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        made = probe()
        with monkeypatch.context() as patched:
            patched.setattr(probes, "descendants", lambda pid: [])
            made.read()
        time.sleep(0.2)
        percent = made.read()[column]
        process.communicate("\n")
    assert percent < 500


@linux
def test_a_process_that_has_ended_is_left_out(family: subprocess.Popen[bytes]) -> None:
    pytest.importorskip("psutil")
    for probe in (PsutilProbe(), ProcProbe()):
        column = probe.columns.index("children_rss_bytes")
        before = len(str(probe.read()[column]).split())
        assert before >= 2
    grandchild = descendants(family.pid)[0]
    os.kill(grandchild, signal.SIGKILL)
    family.kill()
    family.wait()
    assert family.pid not in descendants(os.getpid())
    for probe in (PsutilProbe(), ProcProbe()):
        assert len(str(probe.read()[probe.columns.index("children_rss_bytes")]).split()) < before


def test_without_psutil_proc_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)
    assert isinstance(host_probe(), ProcProbe)


def test_without_proc_nothing_is_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    class Nowhere:
        def __init__(self, path: str) -> None:
            self.path = path

        def read_text(self) -> str:
            raise FileNotFoundError(self.path)

    monkeypatch.setattr(probes, "Path", Nowhere)
    reading = dict(zip(HOST_COLUMNS, ProcProbe().read(), strict=True))
    assert {name for name, value in reading.items() if value is None} == {
        "cpu_percent",
        "process_cpu_percent",
        "rss_bytes",
        "cpu_mhz",
    }


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "87, 1024, 301.55, 1980, 2619, 61, 0x0000000000000024\n",
            [87.0, 1024 * 2**20, 301.55, 1980.0, 2619.0, 61.0, "power_cap|software_thermal"],
        ),
        ("0, 3, [N/A], 210, 405, 33, 0x0000000000000001", [0.0, 3 * 2**20, None, 210.0, 405.0, 33.0, "idle"]),
        ("5, [Not Supported], 1, 2, 3, 4, [N/A]", [5.0, None, 1.0, 2.0, 3.0, 4.0, None]),
        ("", [None] * 7),
        ("Failed to initialize NVML", [None] * 7),
    ],
)
def test_lines_of_nvidia_smi(line: str, expected: list[object]) -> None:
    assert smi_values(line) == expected


def test_no_reason_to_throttle_is_an_empty_text() -> None:
    assert throttle_words(0) == ""
    assert throttle_words(0x1FF).count("|") == 8


def test_the_reasons_are_nvmls() -> None:
    pynvml = pytest.importorskip("pynvml")
    assert throttle_words(pynvml.nvmlClocksEventReasonSwPowerCap) == "power_cap"
    assert throttle_words(pynvml.nvmlClocksEventReasonHwThermalSlowdown) == "hardware_thermal"
    assert throttle_words(pynvml.nvmlClocksEventReasonSwThermalSlowdown) == "software_thermal"
    assert throttle_words(pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown) == "power_brake"


class FakeNvml(SimpleNamespace):
    """NVML for one GPU that does not tell its power."""

    class NVMLError(Exception):
        pass

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    def __init__(self, *, works: bool) -> None:
        self.works = works

    def nvmlInit(self) -> None:
        if not self.works:
            raise self.NVMLError("no driver")

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        return uuid

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> Any:
        return SimpleNamespace(gpu=42, memory=3)

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> Any:
        return SimpleNamespace(used=5_000_000, total=9_000_000)

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:
        raise self.NVMLError("not supported")

    def nvmlDeviceGetClockInfo(self, handle: str, kind: int) -> int:
        return {1: 1980, 2: 2619}[kind]

    def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:
        return 61

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:
        return 0x40


def test_nvml_is_read_and_what_it_does_not_tell_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(works=True))
    assert NvmlProbe(Gpu(0, "GPU-a")).read() == [42, 5_000_000, None, 1980, 2619, 61, "hardware_thermal"]


def test_nvidia_smi_is_followed_where_nvml_cannot_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\necho \"$@\" > {tmp_path}/asked\necho '7, 1, 2, 3, 4, 5, 0x0'\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(works=False))
    probe = gpu_probe(Gpu(0, "GPU-a"))
    assert isinstance(probe, NvidiaSmiProbe)
    deadline = time.monotonic() + 10
    while probe.read()[0] is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert probe.read() == [7.0, 2**20, 2.0, 3.0, 4.0, 5.0, ""]
    assert "--id=GPU-a" in (tmp_path / "asked").read_text()
    probe.close()
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert gpu_probe(Gpu(0, "GPU-a")) is None


class Counter:
    """A probe that counts."""

    columns = ("rss_bytes", "children_rss_bytes", "other")

    def __init__(self) -> None:
        self.count = 0
        self.closed = False

    def read(self) -> list[Any]:
        self.count += 1
        return [self.count * 100, "1 2" if self.count == 1 else "", None]

    def close(self) -> None:
        self.closed = True


def test_samples_are_written_as_they_were_read(tmp_path: Path) -> None:
    probe = Counter()
    with Sampler([probe], interval_s=0.02) as sampler:
        time.sleep(0.11)
    assert probe.closed
    assert probe.count == len(sampler.rows) >= 2
    sampler.write(tmp_path / "samples.csv")
    with (tmp_path / "samples.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["time_s", *Counter.columns] == sampler.columns
    assert [int(row["rss_bytes"]) for row in rows] == [100 * number for number in range(1, probe.count + 1)]
    assert {row["other"] for row in rows} == {""}
    times = [float(row["time_s"]) for row in rows]
    assert times == sorted(times)
    assert sampler.peak_bytes() == probe.count * 100


def test_a_part_shorter_than_the_interval_has_one_sample() -> None:
    with Sampler([Counter()], interval_s=60) as sampler:
        pass
    assert len(sampler.rows) == 1
    assert sampler.peak_bytes() == 103


def test_gpu_columns_name_their_units() -> None:
    assert len(GPU_COLUMNS) == len(set(GPU_COLUMNS)) == 7


def test_a_process_that_another_thread_started_is_found_too() -> None:
    code = """
import subprocess, threading
def start():
    process = subprocess.Popen(["sleep", "60"])
    print(process.pid, flush=True)
    input()
    process.kill()
threading.Thread(target=start).start()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        found = descendants(process.pid)
        process.communicate("\n")
    assert found == [child]
