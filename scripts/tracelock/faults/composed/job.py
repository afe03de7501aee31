"""A composed workload with some of its faults switched on; imports torch."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from tracelock.faults.composed import faulty_loading, faulty_passes, faulty_rest
from tracelock.faults.composed.faulty import Faulty, Sample
from tracelock.faults.composed.networks import CLASSES, samples, stages
from tracelock.faults.composed.plan import Plan
from tracelock.runner.outside.cores import Queue
from tracelock.runner.workload import label

MAKERS = {**faulty_loading.FAULTS, **faulty_passes.FAULTS, **faulty_rest.FAULTS}
EPOCH = 24  # batches


class Rows(torch.utils.data.Dataset[Sample]):
    """Samples in memory."""

    def __init__(self, plan: Plan, faults: Collection[Faulty], double: bool) -> None:
        found = samples(plan, EPOCH * plan.batch)
        self._values = found.double() if double and found.is_floating_point() else found
        self._faults = faults

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: int) -> Sample:
        sample = (self._values[index], index % CLASSES)
        for fault in self._faults:
            sample = fault.sample(sample)
        return sample


class Job:
    """The training loop of a plan.

    Parameters
    ----------
    counts
        Of each fault that is switched on, by name.
    loaded
        Whether batches are loaded; False: the same batch again and again, for free.
    """

    def __init__(self, plan: Plan, counts: Mapping[str, float], loaded: bool = True) -> None:
        self.plan, self.on = plan, set(counts)
        self.faults = [MAKERS[name](count) for name, count in counts.items()]
        torch.manual_seed(plan.seed)
        network = stages(plan, dense="dense embedding" in self.on)
        self.network = network.double() if "double precision" in self.on else network
        self.parameters = list(self.network.parameters())
        self.optimizers = list(self._optimizers())
        self.steps, self.step_ns, self.loading_ns, self.starts = 0, [0] * 0, [0] * 0, [0] * 0
        self.queued_ns: list[int | None] = []
        self._queue = Queue()
        rows = Rows(plan, self.faults, "double precision" in self.on)
        self._batches = self._feed(self._loader(rows) if loaded else [next(iter(self._loader(rows, workers=0)))])

    def step(self) -> None:
        """Train on one batch."""
        self._queue.lap()
        began = time.perf_counter_ns()
        with self._label("data_loading"):
            values, labels = next(self._batches)
        loaded = time.perf_counter_ns()
        for fault in self.faults:
            fault.before(self, values, labels)
        with self._anomaly():
            with self._label("forward_pass"), self._autocast():
                loss = self._loss(self._forward(values), labels)
            with self._label("backward_pass"):
                self._backward(loss)
        for fault in self.faults:
            fault.gradients(self)
        for optimizer in self.optimizers:
            optimizer.step()
        if self.plan.logs:
            self.last = loss.item()
        self.steps += 1
        for fault in self.faults:
            fault.after(self, values, loss)
        self.step_ns.append(time.perf_counter_ns() - began)
        self.loading_ns.append(loaded - began)
        self.queued_ns.append(self._queue.lap())

    def close(self) -> None:
        """Let go of what the faults hold."""
        for fault in self.faults:
            fault.close()

    def plain(self, values: torch.Tensor) -> torch.Tensor:
        """Return what the network makes of a batch, without any fault between its stages."""
        for stage in self.network:
            values = stage(values)
        return values

    def _forward(self, values: torch.Tensor) -> torch.Tensor:
        again = "recomputed forward" in self.on
        for number, stage in enumerate(self.network):
            if number == len(self.network) - 1 and "head sample by sample" in self.on:
                return torch.cat([stage(row.unsqueeze(0)) for row in values])
            values = checkpoint(stage, values, use_reentrant=False) if again else stage(values)
            for fault in self.faults:
                values = fault.between(values, number)
        return values

    def _loss(self, output: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        found = [loss for fault in self.faults if (loss := fault.loss(self, output, labels)) is not None]
        loss = found[0] if found else functional.cross_entropy(output, labels)
        for fault in self.faults:
            loss = fault.penalty(self, loss)
        return loss

    def _backward(self, loss: torch.Tensor) -> None:
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        if "backward twice" in self.on:
            loss.backward(retain_graph=True)  # type: ignore[no-untyped-call]
            for optimizer in self.optimizers:
                optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]

    def _optimizers(self) -> Iterator[torch.optim.Optimizer]:
        dense = list(self.parameters)
        if self.plan.network == "recommender" and any(name == "dense embedding" for name, _ in self.plan.faults):
            table = self.parameters[0]
            if "dense embedding" not in self.on:
                dense = dense[1:]
                yield torch.optim.SparseAdam([table], lr=1e-4)
            yield torch.optim.Adam(dense, lr=1e-4, foreach=True)
            return
        together = "optimizer one by one" not in self.on
        kind = self.plan.optimizer
        if kind in ("sgd", "momentum"):
            yield torch.optim.SGD(dense, lr=1e-3, momentum=0.9 if kind == "momentum" else 0.0, foreach=together)
        elif kind == "adam" or not together:
            yield torch.optim.Adam(dense, lr=1e-4, foreach=together)
        else:
            yield torch.optim.AdamW(dense, lr=1e-4, fused=True)

    def _loader(self, rows: Rows, workers: int | None = None) -> Iterable[Any]:
        kind, collate = self.plan.loader, self._collate
        workers = int(kind == "workers") if workers is None else workers
        more: dict[str, Any] = {"persistent_workers": True} if workers else {}
        loader = torch.utils.data.DataLoader(
            rows, self.plan.batch, shuffle=True, num_workers=workers, collate_fn=collate, **more
        )
        if kind == "cached":
            return list(loader)
        return loader if kind != "generator" else Slices(rows, self.plan.batch)

    def _collate(self, some: list[Sample]) -> Any:
        made = [found for fault in self.faults if (found := fault.collate(some)) is not None]
        return made[0] if made else tuple(torch.utils.data.default_collate(some))

    def _feed(self, loader: Iterable[Any]) -> Iterator[Any]:
        while True:
            self.starts.append(len(self.step_ns))
            yield from loader

    def _label(self, name: str) -> AbstractContextManager[Any]:
        return label(name) if self.plan.labels else nullcontext()

    def _autocast(self) -> AbstractContextManager[Any]:
        wanted = "needless autocast" in self.on
        return torch.autocast("cpu", torch.bfloat16) if wanted else nullcontext()

    def _anomaly(self) -> AbstractContextManager[Any]:
        wanted = "anomaly detection" in self.on
        return torch.autograd.set_detect_anomaly(True, check_nan=True) if wanted else nullcontext()


class Slices:
    """Batches cut from memory, without a DataLoader."""

    def __init__(self, rows: Rows, batch: int) -> None:
        self._values, self._batch = rows._values, batch

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for at in range(0, len(self._values), self._batch):
            some = self._values[at : at + self._batch]
            yield some, torch.arange(at, at + len(some)) % CLASSES
