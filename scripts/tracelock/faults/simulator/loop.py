"""The training loop of a job: the host's program, step by step."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from tracelock.faults.simulator import passes
from tracelock.faults.simulator.chance import seeded
from tracelock.faults.simulator.habits import Spoiler
from tracelock.faults.simulator.job import Job
from tracelock.faults.simulator.loader import Workers
from tracelock.faults.simulator.memory import Allocator
from tracelock.faults.simulator.network import Kernel, Layer, Op
from tracelock.faults.simulator.timeline import COMMUNICATION, COMPUTE, COPY, Host, Tape, ns

Program: TypeAlias = Generator[tuple[int, int], int, None]  # yields (start, cost) of a collective, receives its end

BUCKET_BYTES = 25 * 2**20  # DistributedDataParallel's default
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
SINGLE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
MULTI = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def _small(family: str, name: str) -> Kernel:
    return Kernel("reduce", f"void {name}", 1e4, 4e3, 0.0, 0.5)


LOSS = Layer(
    forward=(
        Op(
            ("aten::cross_entropy_loss", "aten::log_softmax", "aten::_log_softmax"),
            12.0,
            (_small("reduce", "cunn_SoftMaxForward<4, float>"),),
        ),
        Op(
            ("aten::nll_loss_nd", "aten::nll_loss_forward"),
            9.0,
            (_small("reduce", "nll_loss_forward_reduce_cuda_kernel_2d<float>"),),
        ),
    ),
    backward=(
        Op(
            ("autograd::engine::evaluate_function: NllLossBackward0", "NllLossBackward0", "aten::nll_loss_backward"),
            14.0,
            (_small("reduce", "nll_loss_backward_reduce_cuda_kernel_2d<float>"),),
        ),
        Op(
            (
                "autograd::engine::evaluate_function: LogSoftmaxBackward0",
                "LogSoftmaxBackward0",
                "aten::_log_softmax_backward_data",
            ),
            12.0,
            (_small("reduce", "cunn_SoftMaxBackward<4, float>"),),
        ),
    ),
    parameters=(),
)


@dataclass(frozen=True)
class StepTime:
    """When a step began and ended on the host, and what it waited for its batch; ns."""

    start: int
    end: int
    loading: int


class Loop:
    """One rank of a job."""

    def __init__(self, job: Job, rank: int = 0) -> None:
        self.job, self.rank = job, rank
        self.random = seeded(job.seed, rank)
        self.tape = Tape()
        self.host = Host(job.machine, self.random, self.tape)
        self.layers = (*job.network.layers, LOSS)
        held = 16 * sum(job.network.parameters)
        reserved = int(0.985 * job.machine.memory_bytes) if job.retries else 0
        self.memory = Allocator(self.host, held, reserved)
        self.spoiler = Spoiler(job, self.host, self.memory)
        self.workers: Workers | None = None
        self.times: list[StepTime] = []
        self.loaded = 0  # batches
        self.loading = 0  # ns, in the current step
        self.epoch_starts: list[int] = []  # steps

    def run(self, steps: int) -> Program:
        """Run `steps` more steps."""
        for _ in range(steps):
            yield from self._step(len(self.times))

    def _step(self, number: int) -> Program:
        start, self.loading = self.host.now, 0
        self.host.slow_down = self._slow_down()
        with self.host.span(f"ProfilerStep#{number}", "user_annotation"):
            if self.job.habits.prefetches:
                self.host.device.wait(COMPUTE, COPY)
            else:
                self._fetch(COMPUTE)
            with self.host.span("train.py(61): train_step", "python_function"):
                yield from self._train(number)
            if self.job.habits.prefetches:
                self._fetch(COPY)
            with self.host.span("train.py(77): after_step", "python_function"):
                self.spoiler.after_step(number, self._forward)
            self.host.work(12.0)
        self.times.append(StepTime(start, self.host.now, self.loading))

    def _slow_down(self) -> float:
        world = self.job.world
        late = world.straggler if world.ranks > 1 and self.rank == world.ranks - 1 else 1.0
        return late * math.exp(self.random.gauss(0.0, world.imbalance)) / self.job.clock

    def _be_late(self) -> None:
        """Let another program have this host's core for a while, about once in as many steps as there are ranks.

        Or in every step that of the last rank.
        """
        world = self.job.world
        if not world.late_us:
            return
        if self.rank == world.ranks - 1 if world.late_last else self.random.random() * world.ranks < 1:
            self.host.sleep(world.late_us)

    def _train(self, number: int) -> Program:
        self._be_late()
        with self.host.span(f"Optimizer.zero_grad#{self.job.optimizer}.zero_grad", "user_annotation"):
            self.host.work(6.0 + 0.15 * len(self.job.network.parameters))
        self.spoiler.before_model()
        if self.job.settings.cuda_graph and not self.job.habits.sync_times and not self.job.retries:
            self.host.work(25.0)
            self.host.launch_graph(passes.graph(self.job, self.layers))
            yield from self._reduce_all(sum(self.job.network.parameters))
        else:
            blocks = self._forward()
            yield from self._backward(blocks)
        passes.optimizer_step(self.job, self.host)
        self.spoiler.leak()

    def _fetch(self, stream: int) -> None:
        """Take the next batch from the loader and copy it to the device."""
        before = self.host.now
        self._load()
        self.loading += self.host.now - before
        settings, size = self.job.settings, self.job.network.sample_bytes * self.job.settings.batch_size
        for part in (size, 8 * settings.batch_size):
            with self.host.span("aten::to"), self.host.span("aten::_to_copy"), self.host.span("aten::copy_"):
                self.host.work(8.0)
                self.memory.give(self.memory.take(part))
                self.host.copy("HtoD", part, pinned=settings.pin_memory, waits=not settings.non_blocking, stream=stream)

    def _load(self) -> None:
        if self.loaded % self.job.data.epoch_steps == 0:
            self.epoch_starts.append(len(self.times))
            self._begin_epoch()
        self.loaded += 1
        with self.host.span(MULTI if self.workers else SINGLE, "user_annotation"):
            if self.workers:
                self.host.now = max(self.host.now, self.workers.next_ready(self.host.now))
                self.host.work(70.0)
            else:
                self._load_here()

    def _begin_epoch(self) -> None:
        settings, data = self.job.settings, self.job.data
        if not settings.num_workers:
            return
        kept = self.workers is not None and settings.persistent_workers
        if not kept:
            self.host.work(9_000.0 * settings.num_workers)  # forks, one after the other
        start_up = 0 if kept else ns(data.worker_start_us)
        cost = self._worker_cost(seeded(self.job.seed, self.loaded))
        self.workers = Workers(settings.num_workers, settings.prefetch_factor, self.host.now, start_up, cost)

    def _worker_cost(self, random: Random) -> Callable[[], int]:
        settings, data, machine = self.job.settings, self.job.data, self.job.machine
        crowded = max(1.0, (settings.num_workers + 1) / machine.cores)
        mean = settings.batch_size * data.sample_us + data.collate_calls * data.collate_us
        return lambda: ns(mean * crowded * math.exp(random.gauss(0.0, data.spread)) / machine.host_speed)

    def _load_here(self) -> None:
        settings, data = self.job.settings, self.job.data
        self.host.work(settings.batch_size * data.sample_us * math.exp(self.random.gauss(0.0, data.spread)))
        for _ in range(data.collate_calls):
            with self.host.span("aten::stack"), self.host.span("aten::cat"):
                self.host.work(data.collate_us)
        if settings.pin_memory:
            with self.host.span("aten::pin_memory"):
                self.host.work(20.0 + self.job.network.sample_bytes * settings.batch_size / 6e3)

    def _forward(self) -> list[tuple[int, int]]:
        """Run the model and its loss forward; return the memory that the backward pass will free."""
        blocks = []
        for index, layer in enumerate(self.layers):
            size = sum(kernel.sample_bytes for op in layer.forward for kernel in op.kernels) / 3
            with self.host.span("aten::empty"):
                self.host.work(1.5)
                blocks.append(self.memory.take(size * self.job.settings.batch_size))
            passes.layer_forward(self.job, self.host, layer)
            self.spoiler.between_layers(index, len(self.layers))
        return blocks

    def _backward(self, blocks: list[tuple[int, int]]) -> Program:
        waiting = 0
        for layer in reversed(self.layers):
            passes.layer_backward(self.job, self.host, layer)
            self.memory.give(blocks.pop())
            waiting += sum(layer.parameters)
            if self.job.habits.overlaps and 4 * waiting >= BUCKET_BYTES:
                yield from self._reduce(4 * waiting)
                waiting = 0
        yield from self._reduce_all(waiting)

    def _reduce_all(self, elements: int) -> Program:
        if elements:
            yield from self._reduce(4 * elements)
        self.host.device.wait(COMPUTE, COMMUNICATION)

    def _reduce(self, size: int) -> Program:
        ranks = self.job.world.ranks
        if ranks < 2:
            return
        host = self.host
        with host.span("nccl:all_reduce", "user_annotation"):
            host.work(20.0)
            host.device.wait(COMMUNICATION, COMPUTE)
            correlation = host.call("cudaLaunchKernelExC", host.machine.launch_us)
            start = max(host.now + ns(host.machine.latency_us), host.device.idle_at(COMMUNICATION))
            cost = ns(15.0 + 2 * (ranks - 1) / ranks * size / host.machine.network_gbs / 1e3)
            end = yield start, cost
            host.device.free[COMMUNICATION] = end
            extra = {
                "Collective name": "allreduce",
                "In msg nelems": size // 4,
                "Out msg nelems": size // 4,
                "dtype": "Float",
                "Group size": ranks,
            }
            host.tape.write(
                "kernel",
                ALL_REDUCE,
                COMMUNICATION,
                start,
                end,
                correlation=correlation,
                external=host.operators[-1],
                **extra,
            )
