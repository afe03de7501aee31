"""What is installed is read from files, whoever installed it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from prefixes import SITE, conda_prefix, conda_record, dist_info, pip_install, venv

from tracelock.envs.files import check_files, check_metadata
from tracelock.envs.installed import read_installed, without_login
from tracelock.envs.package import Package, environment_digest, speed_tier
from tracelock.errors import TracelockError


def names(packages) -> list[tuple[str, str | None]]:
    return [(p.name, p.version) for p in packages]


def test_a_conda_prefix_has_its_records_and_no_pip_package_that_conda_brought(tmp_path: Path) -> None:
    installed = read_installed(conda_prefix(tmp_path))
    assert (installed.kind, installed.python) == ("conda", "3.10.14")
    assert names(installed.conda) == [("numpy", "1.26.4"), ("python", "3.10.14"), ("pytorch", "2.5.1")]
    assert installed.pip == ()
    torch = installed.conda[2]
    assert (torch.build, torch.channel) == ("py3.10_cuda11.8_cudnn9.1.0_0", "https://conda.anaconda.org/pytorch")


def test_pip_packages_in_a_conda_prefix_are_told_apart_with_their_origin(tmp_path: Path) -> None:
    prefix = conda_prefix(tmp_path)
    vcs = {"url": "https://me:secret@host.example/a/Apex.git", "vcs_info": {"vcs": "git", "commit_id": "abc123"}}
    pip_install(prefix / SITE, "Apex_x", "0.1", vcs)
    pip_install(prefix / SITE, "mine", "1.0", {"url": "file:///home/someone/mine", "dir_info": {"editable": True}})
    apex, mine = read_installed(prefix).pip
    assert (apex.name, apex.installer) == ("apex-x", "pip")
    assert apex.direct_url == {**vcs, "url": "https://host.example/a/Apex.git"}
    assert mine.unreproducible == "installed from a folder of this machine, editable"
    assert "/home/someone" not in json.dumps(mine.to_json())


def test_other_files_in_conda_meta_are_no_packages_and_a_broken_record_is_told(tmp_path: Path) -> None:
    prefix = conda_prefix(tmp_path)
    (prefix / "conda-meta" / "history").write_text("==> now <==\n")
    (prefix / "conda-meta" / "pixi.json").write_text('{"manifest": 1}')
    (prefix / "conda-meta" / "cut-1.0-0.json").write_text('{"name": "cut", "ver')
    installed = read_installed(prefix)
    assert len(installed.conda) == 3
    assert [problem.where for problem in installed.damaged] == [str(prefix / "conda-meta" / "cut-1.0-0.json")]


def test_what_a_broken_pip_run_left_behind_is_damaged_and_no_package(tmp_path: Path) -> None:
    prefix = venv(tmp_path, numpy="2.0")
    (prefix / "lib/python3.11/site-packages/~umpy-1.9.dist-info").mkdir()
    installed = read_installed(prefix)
    assert names(installed.pip) == [("numpy", "2.0")]
    assert len(installed.damaged) == 1


def test_a_venv_with_system_packages_sees_those_of_its_base_after_its_own(tmp_path: Path) -> None:
    base = tmp_path / "base"
    for folder, name, version in (
        ("lib/python3.11/site-packages", "numpy", "1.0"),
        ("local/lib/python3.11/dist-packages", "torch", "2.1"),  # Debian: what pip installed for everybody
        ("lib/python3/dist-packages", "torch", "1.13"),  # Debian: its own package, which the other one shadows
    ):
        pip_install(base / folder, name, version)
    prefix = venv(tmp_path / "venv", numpy="2.0")
    (prefix / "pyvenv.cfg").write_text(f"home = {base}/bin\ninclude-system-site-packages = true\nversion = 3.11.7\n")
    assert names(read_installed(prefix).pip) == [("numpy", "2.0"), ("torch", "2.1")]


@pytest.mark.parametrize("make", [lambda path: path / "absent", lambda path: path])
def test_a_folder_that_is_no_prefix_is_one_clear_line(tmp_path: Path, make) -> None:
    with pytest.raises(TracelockError, match="is neither a conda prefix nor a venv"):
        read_installed(make(tmp_path))


def test_the_digest_depends_on_packages_alone(tmp_path: Path) -> None:
    first, second = read_installed(conda_prefix(tmp_path / "a")), read_installed(conda_prefix(tmp_path / "b"))
    assert first.digest == second.digest
    conda_record(tmp_path / "b", "zlib", "1.3", "0", {})
    assert read_installed(tmp_path / "b").digest != first.digest
    assert venv_digest(tmp_path / "v1", "3.11.7") != venv_digest(tmp_path / "v2", "3.12.1")


def venv_digest(folder: Path, version: str) -> str:
    return read_installed(venv(folder, version)).digest


def test_the_digest_of_an_installation_from_a_folder_does_not_hold_its_machine() -> None:
    here = Package("mine", "1", "pip", files_sha256="a", unreproducible="folder")
    there = Package("mine", "1", "pip", files_sha256="b", unreproducible="folder")
    assert environment_digest([here]) == environment_digest([there])
    assert environment_digest([Package("x", "1", "pip", files_sha256="a")]) != environment_digest([here])


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://user:pw@host/t/tk-1-2/conda-forge/linux-64/a.conda", "https://host/conda-forge/linux-64/a.conda"),
        ("ssh://git@host/a.git", "ssh://git@host/a.git"),
        ("conda-forge", "conda-forge"),
    ],
)
def test_logins_are_taken_out_of_addresses(url: str, expected: str) -> None:
    assert without_login(url) == expected


@pytest.mark.parametrize(
    ("name", "tier"),
    [
        ("pytorch", "torch"), ("torchvision", "torch"), ("pytorch-cuda", "torch"), ("triton", "torch"),
        ("cuda-cudart", "cuda"), ("libcublas", "cuda"), ("nvidia-cublas-cu12", "cuda"), ("cudatoolkit", "cuda"),
        ("cudnn", "cudnn"), ("nvidia-cudnn-cu12", "cudnn"), ("nccl", "cudnn"),
        ("mkl", "mkl"), ("libblas", "mkl"), ("libopenblas", "mkl"),
        ("llvm-openmp", "openmp"), ("_openmp_mutex", "openmp"), ("numpy", "python"),
        ("nvidia-ml-py", "other"), ("libcurl", "other"), ("requests", "other"), ("torchmetrics", "other"),
    ],
)  # fmt: skip
def test_what_a_package_means_for_speed(name: str, tier: str) -> None:
    assert speed_tier(name) == tier


def test_unmodified_files_pass_and_every_kind_of_change_is_told(tmp_path: Path) -> None:
    prefix = conda_prefix(tmp_path)
    pip_install(prefix / SITE, "extra", "1.0")
    assert check_files(read_installed(prefix)) == []
    (prefix / SITE / "torch" / "__init__.py").write_text("t = 2\n")
    (prefix / SITE / "numpy.py").unlink()
    (prefix / SITE / "extra.py").write_text("x = 2\n")
    (prefix / SITE / "torch" / "__pycache__").mkdir()
    (prefix / SITE / "torch" / "__pycache__" / "a.pyc").write_text("")
    (prefix / SITE / "torch" / "hook.py").write_text("")
    (prefix / SITE / "stray").mkdir()
    (prefix / SITE / "stray" / "a.py").write_text("")
    found = {(d.kind, d.name, d.found) for d in check_files(read_installed(prefix))}
    assert found == {
        ("file", f"pytorch: {SITE}/torch/__init__.py", "modified"),
        ("file", f"numpy: {SITE}/numpy.py", "missing"),
        ("file", f"extra: {SITE}/extra.py", "modified"),
        ("unowned", f"{SITE}/torch/hook.py", "belongs to no package"),
        ("unowned", f"{SITE}/stray/", "belongs to no package"),
    }


def test_many_changed_files_of_one_package_are_counted(tmp_path: Path) -> None:
    conda_record(tmp_path, "big", "1", "0", {f"share/{n}": "a" for n in range(40)})
    for number in range(40):
        (tmp_path / f"share/{number}").write_text("b")
    found = check_files(read_installed(tmp_path))
    assert len(found) == 11
    assert (found[-1].name, found[-1].found) == ("big: …", "30 more")


def test_a_prefix_written_into_a_file_is_compared_with_its_digest_afterwards(tmp_path: Path) -> None:
    record = conda_record(tmp_path, "tool", "1", "0", {"bin/tool": f"#!{tmp_path}/bin/python\n"})
    entry = record["paths_data"]["paths"][0]
    entry |= {"sha256_in_prefix": entry["sha256"], "sha256": "0" * 64, "prefix_placeholder": "/opt/placehold"}
    meta = tmp_path / "conda-meta" / "tool-1-0.json"
    meta.write_text(json.dumps(record))
    assert check_files(read_installed(tmp_path)) == []
    del entry["sha256_in_prefix"]  # nobody knows what it must be now; it can only be missing
    meta.write_text(json.dumps(record))
    assert check_files(read_installed(tmp_path)) == []
    (tmp_path / "bin" / "tool").unlink()
    assert [d.found for d in check_files(read_installed(tmp_path))] == ["missing"]


def test_two_packages_may_bring_the_same_path(tmp_path: Path) -> None:
    conda_record(tmp_path, "one", "1", "0", {"share/both": "1"})
    conda_record(tmp_path, "two", "1", "0", {"share/both": "2"})
    assert check_files(read_installed(tmp_path)) == []


def test_pip_over_conda_is_seen_in_the_metadata_although_no_record_changed(tmp_path: Path) -> None:
    prefix = conda_prefix(tmp_path)
    assert check_metadata(read_installed(prefix)) == []
    for path, text in dist_info("numpy", "1.26.4", "pip").items():
        (prefix / SITE / path).write_text(text)
    assert [(d.kind, d.name) for d in check_metadata(read_installed(prefix))] == [("reinstalled", "numpy")]
