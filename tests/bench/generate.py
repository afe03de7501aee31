"""Large traces with the proportions of real ones: ``python -m tests.bench.generate OUT --mb 1000``.

The model is a training job on one GPU: each step loads a batch, copies it, runs forward on one thread and backward on
another. Operators nest six deep and launch one kernel; the driver is called three or four times a kernel. Of 1,000
events about 315 are operators, 210 runtime calls, 370 ends of arrows, 55 kernels, 23 copies and 28 memory records,
close to traces of ResNet training on V100 and A100; 274 bytes an event. Layout and args are those of PyTorch 2.4 to
2.9.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PID: Final = 4242
MAIN, AUTOGRAD = 4242, 4311
BASE_NS: Final = 1_751_410_836_000_000_000
BEGIN_NS: Final = 4_458_676_522_690_655  # since the base: a machine that has been up for two months

HEAD: Final = """
{
  "schemaVersion": 1,
  "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 85198045184,
      "computeMajor": 8, "computeMinor": 0,
      "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,
      "regsPerBlock": 65536, "warpSize": 32,
      "sharedMemPerBlock": 49152, "numSms": 108
    , "regsPerMultiprocessor": 65536, "sharedMemPerBlockOptin": 166912, "sharedMemPerMultiprocessor": 167936
    }
  ],
  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 1, "pg_count": 1},
  "record_shapes": 1,
  "profile_memory": 1,
  "trace_id": "00000000000000000000000000000000",
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": %d,
  "traceEvents": [
"""

# Outermost operator, operators inside it, kernel, input shapes, types, typical device time in µs.
LAYERS: Final = (
    (
        (
            "aten::conv2d",
            "aten::convolution",
            "aten::_convolution",
            "aten::cudnn_convolution",
            "aten::to",
            "aten::empty",
        ),
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816fprop_optimized_bf16_128x128_32x4_nhwc>(...Params)",
        "[[32, %d, 56, 56], [%d, %d, 3, 3], [], [], [], [], []]",
        '["c10::BFloat16", "c10::BFloat16", "", "ScalarList", "ScalarList", "ScalarList", "Scalar"]',
        41.0,
    ),
    (
        (
            "aten::batch_norm",
            "aten::_batch_norm_impl_index",
            "aten::cudnn_batch_norm",
            "aten::empty_like",
            "aten::empty",
        ),
        "void cudnn::bn_fw_tr_1C11_kernel_NCHW<__nv_bfloat16, float, int, 512, true, 1, true>(cudnnTensorStruct, ...)",
        "[[32, %d, 56, 56], [%d], [%d], [], [], [], [], []]",
        '["c10::BFloat16", "float", "float", "float", "float", "Scalar", "Scalar", "Scalar"]',
        18.0,
    ),
    (
        ("aten::relu_", "aten::clamp_min_", "aten::clamp_min", "aten::result_type", "aten::to", "aten::empty"),
        "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::clamp_scalar(...)>",
        "[[32, %d, 56, 56], [%d], [%d]]",
        '["c10::BFloat16"]',
        6.0,
    ),
)
CALLS: Final = ("cudaStreamIsCapturing", "cudaFuncGetAttributes", "cudaEventRecord")
CHANNELS: Final = (64, 128, 256, 512)


def us(ns: int) -> str:
    """Return nanoseconds as the profiler writes them: microseconds with three decimals."""
    return f"{ns // 1000}.{ns % 1000:03d}"


class Job:
    """A training job, event by event. All times in ns; a seed makes it repeatable."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.host, self.device = BEGIN_NS, BEGIN_NS
        self.external, self.correlation, self.sequence, self.allocated = 1, 1, 1, 1 << 30

    def complete(self, category: str, name: str, thread: int, start: int, duration: int, args: str) -> str:
        """Return a complete event of a host thread."""
        return (
            f'  {{\n    "ph": "X", "cat": "{category}", "name": "{name}", "pid": {PID}, "tid": {thread},\n'
            f'    "ts": {us(start)}, "dur": {us(duration)},\n    "args": {{\n      {args}\n    }}\n  }}'
        )

    def flow(self, phase: str, number: int, place: str, time: int, category: str = "ac2g") -> str:
        """Return one end of an arrow."""
        end = ', "bp": "e"' if phase == "f" else ""
        return (
            f'  {{\n    "ph": "{phase}", "id": {number}, {place}, "ts": {us(time)},\n'
            f'    "cat": "{category}", "name": "{category}"{end}\n  }}'
        )

    def operator(self, name: str, thread: int, start: int, duration: int, more: str) -> str:
        """Return an operator."""
        self.external += 1
        ids = f'"External id": {self.external},"Record function id": {self.external - 1}'
        ids += f', "Sequence number": {self.sequence}, "Fwd thread id": 0'
        return self.complete("cpu_op", name, thread, start, duration, f'{ids}, {more}, "Ev Idx": 7')

    def layer(self, kind: int, thread: int) -> Iterator[str]:
        """Yield the operators of one layer from outside in, their calls of the driver, and the kernel."""
        names, kernel, shape, types, typical = LAYERS[kind]
        channels = self.random.choice(CHANNELS)
        more = f'"Input type": {types}, "Input Dims": {shape % ((channels,) * 3)}'
        start, length = self.host, int(self.random.uniform(60_000, 110_000))
        back = "autograd::engine::evaluate_function: " if thread == AUTOGRAD else ""
        here = f'"pid": {PID}, "tid": {thread}'
        if self.sequence % 2:
            yield self.flow("s" if thread == MAIN else "f", self.sequence, here, start, "fwdbwd")
        for depth, name in enumerate(names):
            inset = depth * 2_000
            yield self.operator(back + name if not depth else name, thread, start + inset, length - 2 * inset, more)
        if self.sequence % 2:
            yield self.memory(thread, start + 11_000, channels * 4096)
        inner = start + 12_000
        for call in CALLS[: self.random.choice((2, 2, 3))]:
            yield from self.call(call, thread, inner, 1_200)
            inner += 2_000
        yield from self.launch(kernel, thread, inner, int(self.random.gauss(typical, typical / 10) * 1000))
        self.host = start + length + 3_000

    def memory(self, thread: int, time: int, size: int) -> str:
        """Return an allocation of the forward pass, or its release in the backward pass."""
        size = size if thread == MAIN else -size
        self.allocated += size
        address = 139_000_000_000_000 + self.external * 512
        return (
            f'  {{\n    "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]",\n'
            f'    "pid": {PID}, "tid": {thread},\n    "ts": {us(time)},\n    "args": {{\n'
            f'      "Total Reserved": 4294967296, "Total Allocated": {self.allocated}, "Bytes": {size}, '
            f'"Addr": {address}, "Device Id": 0, "Device Type": 1, "Ev Idx": 9\n    }}\n  }}'
        )

    def call(self, name: str, thread: int, start: int, duration: int) -> Iterator[str]:
        """Yield a runtime call and the end of its arrow."""
        self.correlation += 1
        ids = f'"External id": {self.external}, "cbid": 211, "correlation": {self.correlation}'
        yield self.complete("cuda_runtime", name, thread, start, duration, ids)
        yield self.flow("f", self.correlation, f'"pid": {PID}, "tid": {thread}', start)

    def launch(self, kernel: str, thread: int, start: int, length: int) -> Iterator[str]:
        """Yield a launch, its kernel, and the arrow between them."""
        yield from self.call("cudaLaunchKernel", thread, start, 4_500)
        begin = max(start + 6_000, self.device + 800)
        self.device = begin + max(length, 1_000)
        ids = (
            f'"External id": {self.external}, "queued": 0, "device": 0, "context": 1,\n      "stream": 7, '
            f'"correlation": {self.correlation},\n      "registers per thread": 238, "shared memory": 73728,\n      '
            f'"blocks per SM": 3.6296296, "warps per SM": 14.518518,\n      "grid": [392, 1, 1],\n      '
            f'"block": [128, 1, 1],\n      "est. achieved occupancy %": 23'
        )
        event = self.complete("kernel", kernel, 7, begin, self.device - begin, ids)
        yield event.replace(f'"pid": {PID}', '"pid": 0', 1)
        yield self.flow("s", self.correlation, f'"pid": {PID}, "tid": {thread}', start)
        yield self.flow("f", self.correlation, '"pid": 0, "tid": 7', begin)

    def copy(self, size: int) -> Iterator[str]:
        """Yield a copy of pinned memory to the device."""
        yield from self.call("cudaMemcpyAsync", MAIN, self.host, 5_000)
        begin = max(self.host + 6_000, self.device + 800)
        self.device = begin + size // 20
        ids = (
            f'"External id": {self.external}, "device": 0, "context": 1,\n      "stream": 7, '
            f'"correlation": {self.correlation},\n      "bytes": {size}, "memory bandwidth (GB/s)": 20.000000'
        )
        event = self.complete("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 7, begin, self.device - begin, ids)
        yield event.replace(f'"pid": {PID}', '"pid": 0', 1)
        yield self.flow("s", self.correlation, f'"pid": {PID}, "tid": {MAIN}', self.host)
        self.host += 8_000

    def step(self, number: int, layers: int = 60) -> Iterator[str]:
        """Yield the events of one training step; the step itself comes last, as it ends last."""
        begin = self.host
        loading = self.random.randint(300_000, 900_000)
        args = f'"External id": {self.external}, "Ev Idx": 3'
        name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
        yield self.complete("user_annotation", name, MAIN, self.host + 1_000, loading, args)
        self.host += loading + 10_000
        for _ in range(layers // 6):
            yield from self.copy(self.random.choice((4_096, 65_536, 1 << 20)))
        for thread in (MAIN, AUTOGRAD):
            for place in range(layers) if thread == MAIN else reversed(range(layers)):
                self.sequence = number * layers + place
                yield from self.layer(place % len(LAYERS), thread)
                if place % 3 == 0:
                    yield from self.copy(4_096)
        yield from self.call("cudaDeviceSynchronize", MAIN, self.host, max(self.device - self.host, 2_000))
        self.host = max(self.device, self.host) + 5_000
        yield self.complete("user_annotation", f"ProfilerStep#{number}", MAIN, begin, self.host - begin, args)
        self.host += 1_000


def tail(job: Job) -> str:
    """Return the names of processes and threads, the profiler's window, and the end of the document."""
    names = [
        f'  {{\n    "name": "{kind}", "ph": "M", "ts": {us(BEGIN_NS)}, "pid": {pid}, "tid": {tid},\n    "args": {{\n'
        f'      "{key}": "{label}"\n    }}\n  }}'
        for kind, pid, tid, key, label in (
            ("process_name", PID, 0, "name", "python"),
            ("process_labels", PID, 0, "labels", "CPU"),
            ("process_name", 0, 0, "name", "python"),
            ("process_labels", 0, 0, "labels", "GPU 0"),
            ("thread_name", PID, MAIN, "name", f"thread {MAIN} (python)"),
            ("thread_name", PID, AUTOGRAD, "name", f"thread {AUTOGRAD} (pt_autograd_0)"),
            ("thread_name", 0, 7, "name", "stream 7 "),
        )
    ]
    span = (
        f'  {{\n    "ph": "X", "cat": "Trace", "ts": {us(BEGIN_NS)}, "dur": {us(job.host - BEGIN_NS)},\n'
        '    "pid": "Spans", "tid": "PyTorch Profiler",\n    "name": "PyTorch Profiler (0)",\n'
        '    "args": {\n      "Op count": 0\n    }\n  }'
    )
    return ",\n".join([*names, span]) + '\n  ],\n  "traceName": "generated.pt.trace.json"\n}'


def write_trace(path: Path, megabytes: float, seed: int = 1) -> int:
    """Write a trace of about `megabytes` (10**6 bytes) to `path`; return the number of steps."""
    job, steps, written = Job(seed), 0, 0
    with path.open("w", encoding="utf-8", newline="\n", buffering=1 << 20) as stream:
        stream.write(HEAD % BASE_NS)
        while written < megabytes * 1e6:
            text = ",\n".join(job.step(steps)) + ",\n"
            written += len(text)
            stream.write(text)
            steps += 1
        stream.write(tail(job))
    return steps


def main() -> None:
    """Write a trace by arguments from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--mb", type=float, default=1000.0, help="size in 10**6 bytes")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    print(f"{write_trace(arguments.out, arguments.mb, arguments.seed)} steps")


if __name__ == "__main__":
    main()
