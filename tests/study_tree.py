"""Results folders of made-up studies, with plausible contents, for tests of everything that starts from results.

    tree = StudyTree([Variant({"num_workers": 0}, step_us=180_000, loading=0.4), Variant({"num_workers": 2})])
    folder = tree.write(tmp_path / "demo")

The numbers follow from the arguments and the seed alone.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tracelock.analysis import document
from tracelock.analysis.model import (
    Analysis,
    Breakdown,
    DeviceName,
    Gpu,
    IdleCauses,
    Memory,
    MemoryPoint,
    Operator,
    Step,
    StepSummary,
    TraceSection,
)
from tracelock.diagnosis.model import Diagnosed, Evidence, Finding, Remedy
from tracelock.io import digest, schema, write_json
from tracelock.study.variants import variant_id

STANDARD = {"batch_size": 32, "num_workers": 0, "persistent_workers": False, "pin_memory": False, "amp": "off"}


@dataclass(frozen=True)
class Variant:
    """A variant and what its runs measure. `scatter` is the relative scatter between runs and between steps."""

    overrides: dict[str, Any]
    step_us: float = 100_000.0
    loading: float | None = 0.1
    scatter: float = 0.01
    samples_per_step: int | None = 32
    rss_bytes: int = 900_000_000
    steps: int = 20
    code: str | None = None  # finding; chosen by `loading` where None
    remedies: tuple[Remedy, ...] | None = None
    factor: float = 1.0  # of time, in environments after the first

    @property
    def id(self) -> str:
        return variant_id(self.overrides)

    @property
    def settings(self) -> dict[str, Any]:
        return {**STANDARD, **self.overrides}


@dataclass(frozen=True)
class StudyTree:
    """A study with its runs. The first variant is the baseline."""

    variants: list[Variant]
    experiment: str = "demo"
    environments: tuple[str, ...] = ("default",)
    unlocked: dict[str, bool | None] = field(default_factory=dict)
    repeats: int = 3
    seed: int = 1
    gpus: int = 0
    lost: tuple[tuple[str, str, int], ...] = ()  # (environment, variant id, repeat) that failed
    operators: tuple[str, ...] = ("aten::conv2d", "aten::native_batch_norm", "aten::mm", "aten::copy_")

    def write(self, folder: Path) -> Path:
        """Write the results folder and return it."""
        write_json(folder / "plan.json", self.plan())
        for environment in self.environments:
            self._environment(folder / "envs" / environment, environment)
            for variant in self.variants:
                for repeat in range(1, self.repeats + 1):
                    where = (environment, variant.id, repeat)
                    self._run(folder.joinpath("runs", *map(str, where)), variant, where)
        return folder

    def plan(self) -> dict[str, Any]:
        """Return the document ``tracelock/plan/1``."""
        pairs = [(e, v.id, r) for r in range(1, self.repeats + 1) for e in self.environments for v in self.variants]
        runs = [{"environment": e, "variant": v, "repeat": r, "order": n} for n, (e, v, r) in enumerate(pairs)]
        body = {
            "experiment": self.experiment,
            "description": "Image classification on JPEG files.",
            "workload": "tracelock.runner.workloads.images:build",
            "seed": self.seed,
            "repeats": self.repeats,
            "baseline": self.variants[0].id,
            "environments": list(self.environments),
            "device": "auto",
            "factors": {},
            "variants": [
                {"id": v.id, "settings": v.settings, "overrides": v.overrides, "digest": digest(v.settings)}
                for v in self.variants
            ],
            "runs": runs,
            "timing": {"warmup_steps": 3, "steps": 20},
            "profiler": {
                "wait": 1,
                "warmup": 1,
                "active": 3,
                "repeat": 1,
                "record_shapes": True,
                "profile_memory": True,
                "with_stack": False,
            },
            "limits": {"max_duration_s": 300.0, "max_steps": 100000, "max_trace_mb": 200.0},
            "thresholds": {},
            "remedies": {"test": False},
            "expected_s": None,
        }
        return {"schema": schema("plan"), "digest": digest(body), "study_file": "demo.yaml", **body}

    def _environment(self, folder: Path, name: str) -> None:
        unlocked = self.unlocked.get(name, False)
        if unlocked is not None:
            differences = [{"kind": "version", "name": "numpy", "fatal": True}] if unlocked else []
            write_json(
                folder / "check.json",
                {
                    "schema": schema("envcheck"),
                    "environment": name,
                    "ok": not unlocked,
                    "unlocked": unlocked,
                    "differences": differences,
                    "digest": digest(name),
                    "unknown": {},
                },
            )

    def _run(self, folder: Path, variant: Variant, where: tuple[str, str, int]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "log.txt").write_text("started\n", encoding="utf-8")
        if where in self.lost:
            return
        if where[0] != self.environments[0]:
            variant = replace(variant, step_us=variant.step_us * variant.factor)
        chance = random.Random(f"{self.seed}/{where}")
        level = variant.step_us * (1 + chance.gauss(0, variant.scatter))
        steps = [max(level * (1 + chance.gauss(0, variant.scatter)), 1.0) for _ in range(variant.steps)]
        write_json(folder / "run.json", self._run_document(variant, where, steps, chance))
        document.write(folder / "analysis.json", self._analysis(variant, level * 1.08, chance))

    def _run_document(
        self, variant: Variant, where: tuple[str, str, int], steps: list[float], chance: random.Random
    ) -> dict[str, Any]:
        loading = variant.loading
        samples = None if variant.samples_per_step is None else variant.samples_per_step * len(steps)
        profiled = [step * (1.08 + chance.gauss(0, 0.01)) for step in steps[:3]]
        return {
            "schema": schema("run"), "experiment": self.experiment, "environment": where[0], "variant": where[1],
            "repeat": where[2], "digest": digest(variant.settings), "spec_digest": digest(where), "token": "0" * 32,
            "started": f"2026-03-01T10:{where[2]:02}:00Z", "ended": f"2026-03-01T10:{where[2]:02}:30Z",
            "host": "bench-1", "python": "3.12.4", "torch": "2.13.0+cpu", "threads": 2,
            "device": {"type": "cuda", "index": 0, "uuid": "GPU-1", "name": "NVIDIA A100"} if self.gpus
            else {"type": "cpu", "index": None, "uuid": None, "name": "Xeon"},
            "settings": variant.settings, "warmup": {"steps": 3, "duration_us": 1e6},
            "timed": {
                "steps": len(steps), "duration_us": sum(steps), "step_us": steps, "device_step_us": None,
                "loading_us": None if loading is None else
                [step * min(max(loading + chance.gauss(0, 0.01), 0), 1) for step in steps],
                "samples": samples, "throughput_per_s": None if samples is None else samples / sum(steps) * 1e6,
                "stopped_by": None,
            },
            "profiled": {"steps": 3, "step_us": profiled, "trace": "trace.json.gz", "trace_bytes": 812_345,
                         "overhead_ratio": (sum(profiled) / 3) / (sum(steps) / len(steps)), "stopped_by": None},
            "memory": {"peak_rss_bytes": variant.rss_bytes + where[2] * 1_000_000, "peak_tree_rss_bytes": None,
                       "peak_allocated_bytes": 2 * 10**9 if self.gpus else None,
                       "peak_reserved_bytes": 3 * 10**9 if self.gpus else None},
            "samples": {"file": "samples.csv", "columns": []}, "unknown": {}, "warnings": [],
        }  # fmt: skip

    def _analysis(self, variant: Variant, step_us: float, chance: random.Random) -> Analysis:
        share = variant.loading or 0.0
        parts = breakdown(step_us, share, gpu=self.gpus > 0)
        return Diagnosed(
            trace=TraceSection("trace.json.gz", 812_345, 20_000, "complete", (), "2.13.0", None, None,
                               tuple(DeviceName(n, "NVIDIA A100") for n in range(self.gpus))),
            steps=tuple(Step(f"ProfilerStep#{n}", n * step_us, step_us, parts) for n in range(2, 5)),
            step=StepSummary(3, step_us, step_us, parts, share, "ProfilerStep"),
            gpus=tuple(self._gpu(n, 3 * step_us, share) for n in range(self.gpus)),
            operators=tuple(Operator(name, 3 * 2**n, 3 * step_us * 0.1 / 2**n, 3 * step_us * 0.2 / 2**n,
                                     3 * step_us * 0.3 if self.gpus else None, 3 * step_us * 0.3 if self.gpus else None,
                                     float(2**n)) for n, name in enumerate(self.operators)),
            kernels=(), transfers=(),
            memory=(memory_curve("cuda:0" if self.gpus else "cpu", variant.rss_bytes // 4, 3, step_us),),
            findings=findings(variant, share), verdict="", settings=variant.settings,
        )  # fmt: skip

    def _gpu(self, number: int, span: float, share: float) -> Gpu:
        idle = span * (share + 0.15)
        causes = IdleCauses(span * share, span * 0.08, span * 0.04, span * 0.03, 0.0, 0.0)
        return Gpu(number, span, span - idle, idle, (span - idle) * 0.95, 0.0, (span - idle) * 0.05, 0.0,
                   (span - idle) / span, None, None, causes)  # fmt: skip


def breakdown(step_us: float, share: float, gpu: bool) -> Breakdown:
    """Return parts that sum to the step."""
    rest = 1.0 - share
    kernel, memcpy, runtime = (0.6 * rest, 0.03 * rest, 0.07 * rest) if gpu else (0.0, 0.0, 0.0)
    operators = (0.2 if gpu else 0.93) * rest
    other = 1.0 - share - kernel - memcpy - runtime - operators
    return Breakdown(kernel * step_us, memcpy * step_us, 0.0, 0.0, runtime * step_us, share * step_us,
                     operators * step_us, other * step_us)  # fmt: skip


def findings(variant: Variant, share: float) -> tuple[Finding, ...]:
    """Return a finding for a step that waits, else that nothing is wrong."""
    if (variant.code or "") == "no-bottleneck" or (variant.code is None and share < 0.1):
        facts = (Evidence("cpu_op: 93 % of the step", 0.93),)
        title = "No bottleneck found: operators work 93 % of the step (compute-bound on the CPU)"
        return (Finding("no-bottleneck", title, "info", None, None, "medium", facts, ()),)
    remedies = variant.remedies
    if remedies is None:
        remedies = (Remedy({"num_workers": 2}, "the wait for data falls below 5 % of the step"),)
    fact = Evidence(f"DataLoader: {share * 100_000:,.0f} of 100,000 µs a step", share, "share of step", 0.05)
    title = f"The step waits for data: the DataLoader takes {share:.0%} of it"
    code = variant.code or "dataloader-bound"
    return (Finding(code, title, "critical", share, share * 0.95, "high", (fact,), remedies),)


def memory_curve(device: str, high: int, steps: int, step_us: float, points: int = 400) -> Memory:
    """Return a saw-tooth curve: memory rises in the forward pass and falls in the backward pass."""
    curve = []
    for number in range(points):
        phase = number / points * steps % 1
        level = 0.4 + 0.6 * (phase / 0.5 if phase < 0.5 else (1 - phase) / 0.5)
        curve.append(MemoryPoint(number / points * steps * step_us, int(high * level), None))
    return Memory(device, high, None, 0.0, tuple(curve))


def demo_tree(**changes: Any) -> StudyTree:
    """Return a study like the demo: workers, persistent workers, batch size; bound by loading without workers."""
    variants = []
    for batch in (32, 64):
        for workers, persistent, time, share in (
            (0, False, 180_000, 0.42),
            (1, False, 128_000, 0.21),
            (1, True, 121_000, 0.16),
            (2, False, 108_000, 0.07),
            (2, True, 101_000, 0.02),
        ):
            overrides = {"batch_size": batch, "num_workers": workers, "persistent_workers": persistent}
            scale = batch / 32 * (1.0 if batch == 32 else 0.93)
            rss = 700_000_000 + workers * 250_000_000 + batch * 2_000_000
            variants.append(
                Variant(overrides, step_us=time * scale, loading=share, samples_per_step=batch, rss_bytes=rss)
            )
    return StudyTree(variants, **changes)
