"""What the code around the model does: waits, small and slow operators, pauses, leaks, an allocator under pressure."""

from __future__ import annotations

from collections.abc import Callable

from tracelock.faults.simulator.chance import seeded
from tracelock.faults.simulator.job import Job
from tracelock.faults.simulator.memory import Allocator
from tracelock.faults.simulator.timeline import COMPUTE, Host

CATENATE = "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 1, 128, 1>"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >"
SLOW = (
    ("aten::index_put_", "void at::native::indexing_backward_kernel<float, 4>"),
    ("aten::sort", "void at::native::radixSortKVInPlace<2, -1, 128, 32, float, long, unsigned int>"),
    ("aten::cumsum", "void at::native::tensor_kernel_scan_innermost_dim<float, std::plus<float> >"),
    ("PairwiseLoss", "pairwise_loss_forward_kernel(float const*, float*, int, int)"),
    ("aten::scatter_add_", "void at::native::_scatter_gather_elementwise_kernel<128, 4>"),
)


class Spoiler:
    """The habits of a job, at the places of the loop where they act."""

    def __init__(self, job: Job, host: Host, memory: Allocator) -> None:
        self.job, self.habits, self.host, self.memory = job, job.habits, host, memory
        self.slow = seeded(job.seed).choice(SLOW)
        self.stuck = seeded(job.seed, "stuck")
        self.leaked: list[tuple[int, int]] = []

    def before_model(self) -> None:
        """Do what happens between the batch's arrival and the model."""
        for _ in range(self.habits.repeated):
            with self.host.span("aten::stack"), self.host.span("aten::cat"):
                self.host.work(5.0)
                self.host.launch(CATENATE, 2.2)
        if self.habits.slow_sample_us:
            with self.host.span(self.slow[0]):
                self.host.work(12.0)
                self.host.launch(self.slow[1], self.habits.slow_sample_us * self.job.settings.batch_size)

    def between_layers(self, index: int, layers: int) -> None:
        """Do what happens after layer `index` of the forward pass."""
        for _ in range(_share(self.habits.sync_times, index, layers)):
            with self.host.span("train.py(44): check", "python_function"):
                self._synchronize()
                self.host.work(15.0)
        for _ in range(_share(self.job.retries, index, layers)):
            self._retry()
        self._short_calls()
        for _ in range(_share(self.habits.teeth, index, layers)):
            with self.host.span("aten::add"):
                self.host.work(4.0)
                block = self.memory.take(2048)
                self.host.launch(ADD, 1.8)
            self.memory.give(block)

    def _short_calls(self) -> None:
        """Record an event, as caching allocators and hooks do; now and then the host is stuck in it."""
        if not self.habits.stalls:
            return
        with self.host.span("aten::record_stream"):
            self.host.work(2.0)
            self.host.call("cudaEventRecord", 1.5)
            if self.stuck.random() < self.habits.stalls / (len(self.job.network.layers) + 1):
                self.host.sleep(self.habits.stall_us)

    def _synchronize(self) -> None:
        host = self.host
        if self.habits.sync == "item":
            self._item()
        elif self.habits.sync == "nonzero":
            with host.span("aten::nonzero"):
                host.work(14.0)
                host.launch("void at_cuda_detail::cub::DeviceReduceSingleTileKernel", 2.5)
                host.copy("DtoH", 8, pinned=False, waits=True)
                host.launch("void at_cuda_detail::cub::DeviceSelectSweepKernel", 3.0)
        elif self.habits.sync == "foreign":
            with host.span("aten::to"), host.span("aten::_to_copy"), host.span("aten::copy_"):
                host.work(9.0)
                host.device.hold(COMPUTE, host.now, self.habits.foreign_us)
                host.copy("DtoH", 4 * self.job.settings.batch_size, pinned=False, waits=True)
        elif self.habits.sync == "cpu":
            with host.span("aten::to"), host.span("aten::_to_copy"), host.span("aten::copy_"):
                host.work(9.0)
                host.copy("DtoH", 4 * self.job.settings.batch_size, pinned=False, waits=True)
        else:
            host.synchronize("cudaDeviceSynchronize")

    def _item(self) -> None:
        with self.host.span("aten::item"), self.host.span("aten::_local_scalar_dense"):
            self.host.work(3.0)
            self.host.copy("DtoH", 4, pinned=False, waits=True)

    def _retry(self) -> None:
        """Ask the driver for memory in vain, give blocks back, ask again: each `cudaFree` waits for the device."""
        with self.host.span("aten::empty"):
            self.host.work(2.0)
            self.host.call("cudaMalloc", 40.0)
            for _ in range(3):
                self.host.synchronize("cudaFree")
                self.host.work(150.0)
            self.host.call("cudaMalloc", 400.0)

    def after_step(self, number: int, forward: Callable[[], list[tuple[int, int]]]) -> None:
        """Do what happens between two steps."""
        if self.habits.logs_item:
            self._item()
        if self.habits.pause and number % self.habits.pause_every == self.habits.pause_every - 1:
            with self.host.span(f"train.py(90): {self.habits.pause}", "python_function"):
                getattr(self, f"_{self.habits.pause}")(forward)

    def _checkpoint(self, _: object) -> None:
        for size in self.job.network.parameters:
            with self.host.span("aten::to"), self.host.span("aten::_to_copy"), self.host.span("aten::copy_"):
                self.host.work(9.0)
                self.host.copy("DtoH", 4 * size, pinned=False, waits=True)
        self.host.sleep(self.habits.pause_us)

    def _logging(self, _: object) -> None:
        self._item()
        self.host.sleep(self.habits.pause_us)

    def _validation(self, forward: Callable[[], list[tuple[int, int]]]) -> None:
        end = self.host.now + round(1000 * self.habits.pause_us)
        while self.host.now < end:
            for block in forward():
                self.memory.give(block)
            self._item()

    def leak(self) -> None:
        """Keep what the step should have let go."""
        if self.habits.leak_bytes:
            with self.host.span("aten::clone"), self.host.span("aten::empty_like"):
                self.host.work(4.0)
                self.leaked.append(self.memory.take(self.habits.leak_bytes))


def _share(times: int, index: int, layers: int) -> int:
    """Return how many of `times` happenings fall to place `index` of `layers`, spread evenly."""
    return times * (index + 1) // layers - times * index // layers
