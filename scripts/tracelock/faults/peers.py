"""The same cases given to rules that others publish: what they would have named.

The rules of the TensorBoard profiler plugin are computed from our figures, which follow its definitions; gpu-idle is
the published program, run on the same file. Both are graded kindly: a case counts as right when the right advice is
anywhere among what they say.
"""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tracelock.analysis.model import Analysis

LOADING = ("dataloader-bound", "worker-startup", "slow-collate")
COMMUNICATION = ("communication-exposed", "slow-device", "straggling-rank", "rank-imbalance")
COPIES = ("pageable-copies", "blocking-copies", "copies-not-overlapped")
PLUGIN = {
    "dataloader": LOADING,
    "communication": COMMUNICATION,
    "larger batch": ("launch-bound",),
    "amp": ("matmul-precision",),
    "memory": ("memory-pressure",),
}
GPU_IDLE = {"dataloader": LOADING, "smallbatch": ("launch-bound",), "h2d_copy": COPIES, "unattributed": ()}
OLDEST_WITH_TENSOR_CORES = ("V100", "T4", "A100", "H100")


@dataclass(frozen=True)
class Advice:
    """What another tool said of one case."""

    tool: str
    said: tuple[str, ...]  # its own words for the causes
    stands_for: tuple[str, ...]  # the codes that its words would be right for


def plugin_advice(analysis: Analysis) -> Advice:
    """Return what the last TensorBoard profiler plugin would recommend: all of its rules that one trace can meet."""
    parts, step = analysis.step.breakdown_us, analysis.step.mean_us
    said = []
    if parts is not None and step:
        said += ["dataloader"] if parts.dataloader / step > 0.05 else []
        said += ["communication"] if parts.communication / step > 0.1 else []
    said += ["larger batch"] if any((gpu.utilization or 0.0) < 0.5 for gpu in analysis.gpus) else []
    said += ["amp"] if _could_use_tensor_cores(analysis) else []
    said += ["memory"] if any(_is_full(peak, whole) for peak, whole in _memory(analysis)) else []
    return Advice("TensorBoard plugin", tuple(said), tuple(code for word in said for code in PLUGIN[word]))


def _could_use_tensor_cores(analysis: Analysis) -> bool:
    cores = analysis.tensor_cores
    known = any(name in device.name for device in analysis.trace.devices for name in OLDEST_WITH_TENSOR_CORES)
    return known and cores is not None and cores.used_share == 0 and (cores.eligible_share or 0.0) > 0


def _memory(analysis: Analysis) -> list[tuple[int | None, int | None]]:
    return [(memory.peak_allocated_bytes, memory.capacity_bytes) for memory in analysis.memory]


def _is_full(peak: int | None, whole: int | None) -> bool:
    return peak is not None and whole is not None and peak > 0.9 * whole


def gpu_idle_advice(program: Path, trace: Path) -> Advice:
    """Return what gpu-idle says of a trace; it reads no compressed files, so it is given a plain copy."""
    plain = trace.with_name("plain.json")
    plain.write_bytes(gzip.decompress(trace.read_bytes()))
    done = subprocess.run([str(program), "--json", str(plain)], capture_output=True, text=True, check=False)
    plain.unlink()
    if done.returncode:
        return Advice("gpu-idle", ("failed",), ())
    said = tuple(finding["cause"] for finding in json.loads(done.stdout)["findings"])
    return Advice("gpu-idle", said, tuple(code for word in said for code in GPU_IDLE.get(word, ())))


def compared(cases: Sequence[tuple[str, Advice]]) -> dict[str, dict[str, float | int | None]]:
    """Return for each tool its shares over (expected code, advice): right, right where it has a rule, alarms."""
    tools = dict.fromkeys(advice.tool for _, advice in cases)
    return {tool: _graded([each for each in cases if each[1].tool == tool], _knows(tool)) for tool in tools}


def _knows(tool: str) -> set[str]:
    words = PLUGIN if tool == "TensorBoard plugin" else GPU_IDLE
    return {code for codes in words.values() for code in codes}


def _graded(cases: Sequence[tuple[str, Advice]], knows: set[str]) -> dict[str, float | int | None]:
    faulty = [code in advice.stands_for for code, advice in cases if code != "no-bottleneck"]
    known = [code in advice.stands_for for code, advice in cases if code in knows]
    alarms = [bool(advice.said) for code, advice in cases if code == "no-bottleneck"]
    return {
        "cases": len(cases),
        "right": _share(faulty),
        "right_where_it_has_a_rule": _share(known),
        "false_alarms": _share(alarms),
    }


def _share(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None
