"""Whose file this is. Several tools write the Trace Event Format; only of the PyTorch profiler's rows is the meaning
known. A file of another tool is read, and named; its rows are not judged.

Marks are names of processes and threads as the tools give them: Ascend's profiler (``trace_view.json``: "Ascend
Hardware", "CANN"), TensorFlow and JAX ("/device:GPU:0", "/host:CPU", lines "XLA Ops", "XLA Modules"), Chrome
("CrBrowserMain", "CrRendererMain"), and torch.autograd.profiler until 1.8 ("CPU functions", "CUDA functions").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from tracelock.trace.columns import DeviceRows, HostKind, HostRows, Track
from tracelock.trace.tally import Tally

AUTOGRAD_HOST: Final = "CPU functions"
AUTOGRAD_DEVICE: Final = "CUDA functions"
_MARKS: Final = {
    "ascend-file": re.compile(r"Ascend Hardware|CANN|Overlap Analysis|AI Core Freq"),
    "tensorflow-file": re.compile(
        r"/(device|host|job):.*|XLA (Ops|Modules|TraceMe)|Steps?|TensorFlow (Ops|Name Scope)"
    ),
    "chrome-file": re.compile(r"Cr(Browser|Renderer|GPU|Utility)Main|Browser|Renderer|GPU Process"),
}
_ENOUGH: Final = {"ascend-file": 1, "tensorflow-file": 1, "chrome-file": 2}  # different marks


def note_origin(tracks: Sequence[Track], host: HostRows, device: DeviceRows, tally: Tally) -> None:
    """Count under a code of its own what another tool than Kineto wrote: one of `_MARKS`, or an unknown one's rows.

    Rows of a kind that only Kineto writes (calls of the runtime, work of devices) speak for Kineto: labels of its
    users are free, and may be called "Browser".
    """
    rows = len(host) + len(device)
    if any(track.pid in (AUTOGRAD_HOST, AUTOGRAD_DEVICE) for track in tracks):
        tally.add("autograd-profiler", rows)
        return
    names = set(_names(tracks))
    for code, mark in _MARKS.items():
        known = bool(len(device)) or bool(((host.kind == HostKind.RUNTIME) | (host.kind == HostKind.DRIVER)).any())
        if (code == "ascend-file" or not known) and sum(map(bool, map(mark.fullmatch, names))) >= _ENOUGH[code]:
            tally.add(code, rows)
            return
    tally.add("unknown-origin", rows if rows and not len(device) and bool((host.kind == HostKind.OTHER).all()) else 0)


def _names(tracks: Iterable[Track]) -> Iterable[str]:
    for track in tracks:
        yield from filter(None, (track.process_name, track.thread_name))
