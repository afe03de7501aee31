"""``tracelock doctor`` on machines that nobody here has."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from unit.envs.tiny import make_project

from tracelock.cli import main
from tracelock.envs import facts as facts_module
from tracelock.envs.clients import Client
from tracelock.envs.doctor import Line, diagnose, to_json
from tracelock.envs.facts import Facts, gather
from tracelock.errors import Problem

V100 = {"name": "Tesla V100-SXM2-16GB", "uuid": "GPU-1", "memory_bytes": 16 << 30, "compute_capability": "7.0"}
CONDA = Client(Path("/opt/conda/bin/conda"), "conda", "26.1.1")


def machine(**changes: Any) -> dict[str, Any]:
    sound = {
        "system": "Rocky Linux 9.4",
        "architecture": "x86_64",
        "glibc": "2.34",
        "driver": "535.104.05",
        "gpus": [V100],
    }
    return {**sound, **changes}


SOUND = Facts(
    machine=machine(),
    clients=(CONDA,),
    channels=("https://conda.anaconda.org/conda-forge/linux-64",),
    prefix=Path("/scratch/envs"),
    free_bytes=500_000_000_000,
    glibc_needed=(">=2.17,<3.0.a0",),
    cuda=2,
    cpu=2,
    root=Path("/project"),
)


def line(facts: Facts, name: str, use_conda: bool = True) -> Line:
    return next(line for line in diagnose(facts, use_conda) if line.name == name)


def on(**changes: Any) -> Facts:
    return replace(SOUND, machine=machine(**changes))


def test_a_sound_machine() -> None:
    lines = diagnose(SOUND, use_conda=True)
    assert [(line.name, line.status, line.message) for line in lines] == [
        ("platform", "ok", "linux-64 (Rocky Linux 9.4, x86_64)"),
        ("conda", "ok", "conda 26.1.1 (/opt/conda/bin/conda)"),
        ("locks", "ok", "4 environments in /project/envs, whose yaml, lock and pin agree"),
        ("glibc", "ok", "2.34 (the locks need >=2.17,<3.0.a0)"),
        ("driver", "ok", "535.104.05 (CUDA 11.8 needs 450.80.02, natively 520.61.05)"),
        ("GPU 0", "ok", "Tesla V100-SXM2-16GB, sm_70, in the cu118 builds' list (sm_37 to sm_90)"),
        ("disk", "ok", "500 GB free at /scratch/envs; all environments take about 24 GB"),
        ("~/.local", "ok", "holds no Python packages"),
    ]
    assert all(line.hint == "" for line in lines)
    assert to_json(lines, SOUND)["ok"] is True


@pytest.mark.parametrize(
    ("driver", "status"),
    [
        ("418.226.00", "fail"),
        ("450.66", "fail"),
        ("450.80.02", "warn"),
        ("515.105.01", "warn"),
        ("520.61.05", "ok"),
        ("570.86.10", "ok"),
    ],
)
def test_drivers(driver: str, status: str) -> None:
    assert line(on(driver=driver), "driver").status == status


@pytest.mark.parametrize(
    ("capability", "status"),
    [
        ("3.5", "fail"),
        ("3.7", "ok"),
        ("7.5", "ok"),
        ("8.9", "ok"),
        ("9.0", "ok"),
        ("10.0", "fail"),
        ("12.0", "fail"),
        (None, "warn"),
    ],
)
def test_gpus(capability: str | None, status: str) -> None:
    found = line(on(gpus=[{**V100, "compute_capability": capability}]), "GPU 0")
    assert found.status == status
    assert bool(found.hint) == (status != "ok")


def test_every_gpu_is_looked_at() -> None:
    lines = diagnose(on(gpus=[V100, {**V100, "name": "NVIDIA B200", "compute_capability": "10.0"}]))
    assert [(each.name, each.status) for each in lines if each.name.startswith("GPU")] == [
        ("GPU 0", "ok"),
        ("GPU 1", "fail"),
    ]


def test_no_gpu() -> None:
    facts = on(driver=None, gpus=[])
    assert line(facts, "driver").status == "warn"
    assert not [each for each in diagnose(replace(facts, cuda=0)) if each.name == "driver"]


@pytest.mark.parametrize(
    ("clients", "message"),
    [
        ((), "no conda, mamba or micromamba on PATH: --use-conda will not work"),
        (
            (Client(Path("/c"), "conda", "23.1.0"), Client(Path("/m"), "micromamba", "2.3.0")),
            "conda 23.1.0 (/c), micromamba 2.3.0 (/m): none that Snakemake can use",
        ),
    ],
)
def test_conda(clients: tuple[Client, ...], message: str) -> None:
    facts = replace(SOUND, clients=clients)
    assert (line(facts, "conda").status, line(facts, "conda").message) == ("fail", message)
    assert "tracelock conda install" in line(facts, "conda").hint
    assert line(facts, "conda", use_conda=False).status == "warn"


def test_other_platforms() -> None:
    assert line(on(architecture="aarch64"), "platform").status == "fail"
    assert line(on(architecture="aarch64"), "platform", use_conda=False).status == "warn"
    musl = diagnose(on(glibc=None), use_conda=True)
    assert [each.status for each in musl if each.name in ("platform", "glibc")] == ["fail"]


def test_an_old_glibc() -> None:
    found = line(on(glibc="2.12"), "glibc")
    assert (found.status, found.message) == ("fail", "glibc 2.12; locked packages need >=2.17,<3.0.a0")


@pytest.mark.parametrize(
    ("free", "status"), [(24_000_000_000, "ok"), (23_999_999_999, "warn"), (9_999_999_999, "fail"), (None, "warn")]
)
def test_disks(free: int | None, status: str) -> None:
    assert line(replace(SOUND, free_bytes=free), "disk").status == status


def test_packages_of_the_home_folder() -> None:
    facts = replace(SOUND, user_site={"3.10": ("numpy", "torch", "triton", "wandb", "yarl")})
    found = line(facts, "~/.local")
    assert found.status == "warn"
    assert found.message == (
        "~/.local holds packages for Python 3.10: numpy, torch, triton, wandb and 1 more, which shadow those of an "
        "environment"
    )
    assert line(replace(facts, variables={"PYTHONNOUSERSITE": "1"}), "~/.local").status == "ok"


def test_variables_that_leak() -> None:
    paths = {"LD_LIBRARY_PATH": "/opt/gcc/lib:/usr/local/cuda-12/lib64", "PYTHONPATH": "/home/me/lib"}
    found = [(each.name, each.status) for each in diagnose(replace(SOUND, variables=paths))]
    assert ("PYTHONPATH", "warn") in found
    assert ("LD_LIBRARY_PATH", "warn") in found
    assert "/usr/local/cuda-12/lib64" in line(replace(SOUND, variables=paths), "LD_LIBRARY_PATH").message
    assert "gcc" not in line(replace(SOUND, variables=paths), "LD_LIBRARY_PATH").message


def test_the_rest() -> None:
    assert line(replace(SOUND, file_locks=False), "file locks").status == "warn"
    assert line(replace(SOUND, channels=("https://repo.anaconda.com/pkgs/main/linux-64",)), "channels").status == "warn"
    problem = Problem("envs/x.yaml:3", "is bad")
    found = line(replace(SOUND, problems=(problem,)), "locks", use_conda=False)
    assert (found.status, found.message) == (
        "fail",
        "1 problems with yaml, lock and pin; the first: envs/x.yaml:3: is bad",
    )


def test_facts_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_project(tmp_path)
    for name in ("torch-2.1.0", "numpy-1.26.0"):
        (tmp_path / f".local/lib/python3.10/site-packages/{name}.dist-info").mkdir(parents=True)
    conda = tmp_path / "bin" / "conda"
    conda.parent.mkdir()
    conda.write_text('#!/bin/sh\n[ "$1" = info ] && echo \'{"channels": ["defaults"]}\' || echo conda 26.1.1\n')
    conda.chmod(0o755)
    variables = {"HOME": str(tmp_path), "PATH": f"{conda.parent}:/usr/bin:/bin"}
    found = gather(tmp_path, tmp_path / "not" / "yet", variables)
    assert found.clients == (Client(conda, "conda", "26.1.1"),)
    assert found.channels == ("defaults",)
    assert found.user_site == {"3.10": ("numpy", "torch")}
    assert found.glibc_needed == (">=2.17",)
    assert (found.cuda, found.cpu, found.problems) == (1, 0, ())
    assert found.free_bytes
    assert found.file_locks
    assert not (tmp_path / "not").exists()


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(facts_module, "gather", lambda root, prefix: on(driver="418.226.00"))
    with pytest.raises(SystemExit) as ended:
        main(["doctor"])
    assert ended.value.code == 1
    said = capsys.readouterr().out.splitlines()
    assert "fail  driver          418.226.00; CUDA 11.8 needs 450.80.02 or later" in said
    assert "                      → ask for a driver of 520.61.05 or later" in said
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "--json"])
    document = json.loads(capsys.readouterr().out)
    assert (ended.value.code, document["schema"], document["ok"]) == (1, "tracelock/doctor/1", False)
    assert {"name", "status", "message", "hint"} == set(document["checks"][0])
    monkeypatch.setattr(facts_module, "gather", lambda root, prefix: SOUND)
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "--use-conda"])
    assert ended.value.code == 0


def test_outside_a_project_the_checkout_of_tracelock_is_looked_at(tmp_path: Path, root: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = gather(None, tmp_path / "envs")
    assert found.root == root
    assert found.cuda + found.cpu == len(list((root / "envs").glob("*.yaml")))


def test_without_any_project_nothing_is_said_of_environments_that_are_not_there(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(facts_module, "_OWN", tmp_path / "installed")
    monkeypatch.chdir(tmp_path)
    found = gather(None, tmp_path / "prefix")
    said = line(found, "locks", use_conda=False)
    assert said.status == "warn"
    assert said.message.startswith(f"no project: {tmp_path}/envs and {tmp_path}/installed/envs hold no environment")
    assert line(found, "locks").status == "fail"
    told = " ".join(each.message for each in diagnose(found))
    assert "agree" not in told
    assert "0 environments" not in told
    assert "0 GB, all" not in told
