"""What ``tracelock watch`` rests on: the change of pace, a DCGM exporter, the Prometheus text."""

from __future__ import annotations

import http.server
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median, quantiles

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracelock.errors import TracelockError
from tracelock.runner.command.dcgm import Exporter, parse
from tracelock.runner.command.live import prometheus
from tracelock.runner.command.slowdown import Detector, Slowdown

# In the form of dcgm-exporter 3.x.
METRICS = """# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",device="nvidia0",modelName="NVIDIA H100",Hostname="n\\"1"} 97
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-b",device="nvidia1",modelName="NVIDIA H100",Hostname="n1"} 3
DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-a"} 1980
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-a"} 612.5
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a"} 1024
DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{gpu="0",UUID="GPU-a"} 36
DCGM_FI_PROF_PCIE_RX_BYTES{gpu="0",UUID="GPU-a"} 2.5e+09
DCGM_FI_DEV_XID_ERRORS{gpu="0"} 0
DCGM_FI_DEV_GPU_TEMP{gpu="0"} NaN
nonsense {{{
"""


def changes(lengths: list[float]) -> list[Slowdown]:
    detector = Detector()
    found = [detector.add(number, float(number), length) for number, length in enumerate(lengths)]
    return [each for each in found if each is not None]


def noisy(mean: float, count: int, seed: int, spread: float = 0.1) -> list[float]:
    draw = random.Random(seed)
    return [draw.lognormvariate(0, spread) * mean for _ in range(count)]


@pytest.mark.parametrize("seed", range(5))
def test_a_change_of_pace_is_found_where_it_begins(seed: int) -> None:
    found = changes(noisy(100, 100, seed) + noisy(150, 60, seed + 100))
    assert [94 <= each.step <= 103 for each in found] == [True]
    assert found[0].before_us == pytest.approx(100, rel=0.1)
    assert found[0].after_us == pytest.approx(150, rel=0.1)


def test_noise_and_single_slow_steps_are_no_change() -> None:
    false = sum(len(changes(noisy(100, 1000, seed, 0.3))) for seed in range(20))
    assert false <= 2  # of 20,000 steps
    assert changes([100.0 if number % 20 else 900.0 for number in range(500)]) == []  # an evaluation now and then
    assert changes([900.0] * 5 + [100.0] * 200) == []  # a warm-up
    assert changes([100.0] * 100 + [50.0] * 100) == []  # faster


class Plain(Detector):
    """The rule word by word, every step anew."""

    def _look(self) -> Slowdown | None:
        past, recent = list(self._past), list(self._recent)
        before, after = median(past), median(each[2] for each in recent)
        spread = 1.4826 * median(abs(each - before) for each in past)
        slow = [each for each in recent if each[2] > quantiles(past, n=4)[2]]
        if after < 1.1 * before or after - before < 5 * spread / 10**0.5 or len(slow) < 9:
            return None
        return Slowdown(slow[0][0], slow[0][1], before, after)


@given(st.lists(st.tuples(st.integers(1, 60), st.sampled_from([1.0, 1.05, 1.2, 2.0])), max_size=12), st.randoms())
def test_what_is_kept_in_order_finds_what_the_rule_finds(parts: list[tuple[int, float]], chance: random.Random) -> None:
    lengths = [pace * chance.choice([100, 101, 103, 150]) for count, pace in parts for _ in range(count)]
    detectors = Detector(), Plain()
    for number, length in enumerate(lengths):
        fast, plain = (each.add(number, float(number), length) for each in detectors)
        assert fast == plain


def test_metrics_of_an_exporter() -> None:
    assert parse(METRICS) == {
        "0": {
            "gpu_utilization_percent": 97.0,
            "gpu_sm_clock_mhz": 1980.0,
            "gpu_power_w": 612.5,
            "gpu_memory_used_bytes": 2.0**30,
            "gpu_throttle": "power_cap|software_thermal",
            "pcie_rx_bytes_per_s": 2.5e9,
        },
        "1": {"gpu_utilization_percent": 3.0},
    }


@contextmanager
def exporter() -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(METRICS.encode())

        def log_message(self, *_: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/metrics"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_an_exporter_is_asked_and_its_silence_told() -> None:
    with exporter() as url:
        asked = Exporter(url, interval_s=0.05)
        stop = asked.start()
        _until(lambda: bool(asked.latest))
        assert asked.latest["1"] == {"gpu_utilization_percent": 3.0}
    _until(lambda: asked.fault is not None)
    assert asked.latest == {}
    stop()


def test_an_address_that_is_none() -> None:
    with pytest.raises(TracelockError, match="expected an address"):
        Exporter("localhost:9400")


def test_prometheus_text() -> None:
    row = {"pid": 7, "rank": 0, "step": 12, "step_us": 1500.5, "loading_share": None, "time_s": 1.0}
    text = prometheus([row], {'a"b': {"gpu_power_w": 3.0, "gpu_throttle": "idle"}})
    assert text.splitlines() == [
        "# TYPE tracelock_dcgm_gpu_power_w gauge",
        'tracelock_dcgm_gpu_power_w{gpu="a\\"b"} 3',
        "# TYPE tracelock_step gauge",
        'tracelock_step{pid="7",rank="0"} 12',
        "# TYPE tracelock_step_us gauge",
        'tracelock_step_us{pid="7",rank="0"} 1500.5',
    ]


def _until(true: object) -> None:
    deadline = time.monotonic() + 20
    while not true() and time.monotonic() < deadline:  # type: ignore[operator]
        time.sleep(0.02)
