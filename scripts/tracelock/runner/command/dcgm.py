"""Reads a DCGM exporter: the metrics of GPUs in the text format of Prometheus, over http."""

from __future__ import annotations

import math
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Callable

from tracelock.errors import Problem, TracelockError
from tracelock.runner.gpu_probes import throttle_words

FIELDS = {
    "DCGM_FI_DEV_GPU_UTIL": "gpu_utilization_percent",
    "DCGM_FI_DEV_SM_CLOCK": "gpu_sm_clock_mhz",
    "DCGM_FI_DEV_POWER_USAGE": "gpu_power_w",
    "DCGM_FI_DEV_FB_USED": "gpu_memory_used_bytes",
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": "gpu_throttle",
    "DCGM_FI_PROF_PCIE_TX_BYTES": "pcie_tx_bytes_per_s",
    "DCGM_FI_PROF_PCIE_RX_BYTES": "pcie_rx_bytes_per_s",
    "DCGM_FI_DEV_PCIE_TX_THROUGHPUT": "pcie_tx_bytes_per_s",
    "DCGM_FI_DEV_PCIE_RX_THROUGHPUT": "pcie_rx_bytes_per_s",
}
# The exporter's own units: MiB of memory, kB/s of the older PCIe counters.
_SCALES = {
    "DCGM_FI_DEV_FB_USED": 2.0**20,
    "DCGM_FI_DEV_PCIE_TX_THROUGHPUT": 1000.0,
    "DCGM_FI_DEV_PCIE_RX_THROUGHPUT": 1000.0,
}
_LINE = re.compile(r"(?P<name>[A-Za-z_:][\w:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)(?:\s+\d+)?$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_MOST_BYTES = 8_000_000


def parse(text: str) -> dict[str, dict[str, float | str]]:
    """Return the known metrics of each GPU by its number (its UUID where it has none); other lines are passed over."""
    found: dict[str, dict[str, float | str]] = {}
    for line in text.splitlines():
        match = _LINE.match(line.strip())
        if match is None or match["name"] not in FIELDS:
            continue
        labels = dict(_LABEL.findall(match["labels"] or ""))
        try:
            value = float(match["value"]) * _SCALES.get(match["name"], 1.0)
        except ValueError:
            continue
        if not math.isfinite(value):
            continue
        gpu = labels.get("gpu") or labels.get("UUID") or "0"
        name = FIELDS[match["name"]]
        found.setdefault(gpu, {})[name] = throttle_words(int(value)) if name == "gpu_throttle" else value
    return found


class Exporter:
    """Asks an exporter once a second in a thread of its own; `latest` is what it said last, empty while silent."""

    def __init__(self, url: str, interval_s: float = 1.0) -> None:
        if not url.startswith(("http://", "https://")):
            what = f"is {url!r}, expected an address such as http://localhost:9400/metrics"
            raise TracelockError(Problem("--dcgm", what))
        self._url = url
        self._interval_s = interval_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tracelock-dcgm", daemon=True)
        self.latest: dict[str, dict[str, float | str]] = {}
        self.fault: str | None = None

    def start(self) -> Callable[[], None]:
        """Begin to ask; return what ends it."""
        self._thread.start()
        return self.stop

    def stop(self) -> None:
        """Ask no more."""
        self._over.set()
        self._thread.join(timeout=2)

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                with urllib.request.urlopen(self._url, timeout=2) as answer:  # noqa: S310  http alone, checked above
                    self.latest, self.fault = parse(answer.read(_MOST_BYTES).decode("utf-8", "replace")), None
            except (OSError, urllib.error.URLError, ValueError) as error:
                self.latest, self.fault = {}, f"{self._url}: {error}"
            self._over.wait(self._interval_s)
