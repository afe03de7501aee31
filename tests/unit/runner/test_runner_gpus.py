"""Which GPUs a run may use: NVIDIA's, their slices, AMD's; by the variables that users and batch systems set."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tracelock.runner import gpus
from tracelock.runner.gpus import Gpu, preset
from tracelock.runner.lease import lease_device

FOUR = [Gpu(index, f"GPU-{letter * 8}-1", "H200") for index, letter in enumerate("abcd")]


def test_an_idle_gpu_is_preferred_to_one_that_others_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "list_gpus", lambda: [Gpu(0, "GPU-0", busy=2), Gpu(1, "GPU-1"), Gpu(2, "GPU-2", busy=1)])
    assert [gpu.index for gpu in gpus.visible_gpus({})] == [1, 2, 0]


@pytest.mark.parametrize(
    ("visible", "indices"),
    [
        (None, [0, 1, 2, 3]),
        ("2", [2]),
        ("2,0", [2, 0]),
        (" 1 , 3 ", [1, 3]),
        ("1,9,3", [1]),  # CUDA ends the list at the first entry that names nothing
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("GPU-cccccccc-1,GPU-a", [2, 0]),
        ("GPU-x,0", []),
    ],
)
def test_a_preset_of_visible_devices_is_respected(visible: str | None, indices: list[int]) -> None:
    assert [gpu.index for gpu in preset(FOUR, visible)] == indices


def test_amd_gpus_are_found_named_and_shown_by_uuid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for node, (simd, unique) in enumerate([(0, 0), (416, 0x16F4D6E9D1E8F6A2), (416, 0)]):
        folder = tmp_path / "nodes" / str(node)
        folder.mkdir(parents=True)
        (folder / "name").write_text("gfx90a\n" if simd else "\n")
        (folder / "properties").write_text(
            f"cpu_cores_count 0\nsimd_count {simd}\nunique_id {unique}\nlocation_id 768\n"
        )
    found = gpus.list_amd_gpus(tmp_path / "nodes")
    assert [(gpu.index, gpu.uuid, gpu.selector) for gpu in found] == [
        (0, "GPU-16f4d6e9d1e8f6a2", "GPU-16f4d6e9d1e8f6a2"),
        (1, "AMD-0000-0300", "1"),
    ]
    monkeypatch.setattr(gpus, "list_gpus", list)
    monkeypatch.setattr(gpus, "list_amd_gpus", lambda: found)
    assert gpus.visible_gpus({"ROCR_VISIBLE_DEVICES": "1,0", "HIP_VISIBLE_DEVICES": "1"}) == [found[0]]
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "0")
    monkeypatch.setenv("ROCR_VISIBLE_DEVICES", "")
    monkeypatch.delenv("ROCR_VISIBLE_DEVICES")
    held = lease_device("auto", print)
    assert os.environ["ROCR_VISIBLE_DEVICES"] == found[0].uuid
    assert "HIP_VISIBLE_DEVICES" not in os.environ
    held.release()


def test_a_gpu_in_mig_mode_is_its_slices() -> None:
    class Nvml:
        NVMLError = RuntimeError
        NVML_DEVICE_MIG_ENABLE = 1

        def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
            return index

        def nvmlDeviceGetMigMode(self, handle: int) -> tuple[int, int]:
            return handle, 0

        def nvmlDeviceGetMaxMigDeviceCount(self, _: int) -> int:
            return 3

        def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: int, number: int) -> str:
            if number == 2:
                raise RuntimeError
            return f"{handle}{number}"

        def nvmlDeviceGetUUID(self, handle: str) -> str:
            return f"MIG-{handle}"

        def nvmlDeviceGetName(self, _: str) -> bytes:
            return b"A100 MIG 1g.5gb"

    slices = gpus._slices(Nvml(), Gpu(1, "GPU-b"))
    assert slices == [Gpu(None, "MIG-10", "A100 MIG 1g.5gb"), Gpu(None, "MIG-11", "A100 MIG 1g.5gb")]
    assert preset([*slices, FOUR[0]], "MIG-11") == [slices[1]]
    assert gpus._slices(Nvml(), Gpu(0, "GPU-a")) == []


def test_a_slice_of_a_gpu_is_a_device_of_its_own() -> None:
    assert preset(FOUR, "MIG-1234") == [Gpu(None, "MIG-1234")]
    assert preset([], "MIG-1234") == []


def test_nvidia_smi_is_asked_where_nvml_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(
        "#!/bin/sh\ncase $1 in --query-gpu*) echo '0, GPU-aa, NVIDIA A100, 80GB'; echo '1, GPU-bb, T4';;"
        " *) echo GPU-bb; echo GPU-bb;; esac\n"
    )
    program.chmod(0o755)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert gpus.list_gpus() == [Gpu(0, "GPU-aa", "NVIDIA A100, 80GB"), Gpu(1, "GPU-bb", "T4", busy=2)]
    program.write_text("#!/bin/sh\necho 'NVIDIA-SMI has failed'; exit 9\n")
    assert gpus.list_gpus() == []
    program.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpus.list_gpus() == []
