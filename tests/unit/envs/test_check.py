"""Every way in which yaml, lock and pin can disagree: a tiny environment each, and the whole text that is said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from unit.envs.tiny import BLAS, LINKED, MKL, NUMPY, PACKAGES, TORCH, Pkg, Project, make_project

from tracelock.cli import main

CPU_TORCH = replace(TORCH, build="py3.10_cpu_0")


def relocked(project: Project, *packages: Pkg) -> None:
    """Write a lock of other packages, and the pin that is rendered from it."""
    from tracelock.envs.catalog import find_environment
    from tracelock.envs.render import render

    project.write_lock(packages)
    render(find_environment(project.root, "tiny"))


def swapped(old: Pkg, new: Pkg) -> tuple[Pkg, ...]:
    return tuple(new if package is old else package for package in PACKAGES)


def a_changed_line(project: Project) -> None:
    project.edit(project.spec, "numpy<2", "numpy<1.26")


def an_added_line(project: Project) -> None:
    project.edit(project.spec, "  - numpy<2\n", "  - numpy<2\n  - pillow\n")


def a_removed_line(project: Project) -> None:
    project.edit(project.spec, "  - numpy<2\n", "")


def another_channel_order(project: Project) -> None:
    project.edit(project.spec, "  - pytorch\n  - conda-forge\n", "  - conda-forge\n  - pytorch\n")


def no_lock(project: Project) -> None:
    project.lock.unlink()


def no_pin(project: Project) -> None:
    project.pin.unlink()


def a_truncated_lock(project: Project) -> None:
    text = project.lock.read_text()
    project.lock.write_text(text[: text.index("hash:\n    md5") + 12])


def a_lock_cut_between_packages(project: Project) -> None:
    text = project.lock.read_text()
    project.lock.write_text(text[: text.index("- name: numpy")])


def an_empty_lock(project: Project) -> None:
    project.lock.write_text("")


def a_lock_of_another_platform(project: Project) -> None:
    project.edit(project.lock, "linux-64", "osx-arm64")


def a_lock_of_another_format(project: Project) -> None:
    project.edit(project.lock, "version: 1\n", "version: 2\n")


def a_package_without_sha256(project: Project) -> None:
    project.edit(project.lock, f"    sha256: {MKL.digest('sha256')}\n", "")


def a_version_edited_by_hand(project: Project) -> None:
    project.edit(project.lock, "version: 2023.2.0", "version: 2023.1.0")


def a_pin_of_another_version(project: Project) -> None:
    project.write_pin(tuple(replace(p, version="1.25.0") if p is NUMPY else p for p in LINKED))


def a_pin_with_another_hash(project: Project) -> None:
    project.edit(project.pin, NUMPY.digest("sha256"), "0" * 64)


def a_pin_with_md5(project: Project) -> None:
    project.edit(project.pin, f"#sha256:{NUMPY.digest('sha256')}", f"#{NUMPY.digest('md5')}")


def a_pin_without_hash(project: Project) -> None:
    project.edit(project.pin, f"#sha256:{NUMPY.digest('sha256')}", "")


def a_pin_with_less(project: Project) -> None:
    project.write_pin(tuple(p for p in LINKED if p is not NUMPY))


def a_pin_with_more(project: Project) -> None:
    project.write_pin((*LINKED, Pkg("pillow", "10.3.0", "py310_0")))


def a_pin_in_another_order(project: Project) -> None:
    project.write_pin(tuple(reversed(LINKED)))


def a_pin_of_another_platform(project: Project) -> None:
    project.edit(project.pin, "# platform: linux-64", "# platform: osx-arm64")


def a_pin_line_that_is_none(project: Project) -> None:
    project.edit(project.pin, "@EXPLICIT\n", "@EXPLICIT\nnumpy=1.26.4\n")


def a_pin_of_nobody(project: Project) -> None:
    project.pin.with_name("tinny.linux-64.pin.txt").write_text("@EXPLICIT\n")


def a_pip_section(project: Project) -> None:
    project.edit(project.spec, "  - numpy<2\n", "  - numpy<2\n  - pip:\n    - torch-tb-profiler\n    - einops==0.8\n")


def defaults(project: Project) -> None:
    project.edit(project.spec, "  - nodefaults\n", "  - defaults\n")
    relocked(project, *PACKAGES)


def a_package_of_anaconda(project: Project) -> None:
    main_mkl = replace(MKL, host="https://repo.anaconda.com/pkgs", channel="main")
    relocked(project, *swapped(MKL, main_mkl))


def a_package_from_a_folder(project: Project) -> None:
    relocked(project, *swapped(MKL, replace(MKL, host="file:///srv/conda")))


def a_cpu_build(project: Project) -> None:
    project.edit(project.spec, "pytorch=2.5.1=py3.10_cuda11.8*", "pytorch=2.5.1\n  - pytorch-cuda=11.8")
    relocked(project, *swapped(TORCH, CPU_TORCH), Pkg("pytorch-cuda", "11.8", "h7e8668a_5", "pytorch"))


def a_cuda_build(project: Project) -> None:
    project.edit(project.spec, "pytorch=2.5.1=py3.10_cuda11.8*", "pytorch=2.5.1\n  - cpuonly")
    relocked(project, *PACKAGES, Pkg("cpuonly", "2.0", "0", "pytorch", "noarch"))


def a_new_mkl(project: Project) -> None:
    blas = replace(BLAS, needs={"mkl": ""})
    relocked(project, blas, *(p for p in swapped(MKL, replace(MKL, version="2024.1.0")) if p is not BLAS))


def numpy_2(project: Project) -> None:
    project.edit(project.spec, "pytorch=2.5.1", "pytorch=2.4.1")
    project.edit(project.spec, "  - numpy<2\n", "  - numpy\n")
    packages = swapped(NUMPY, replace(NUMPY, version="2.0.1"))
    relocked(project, *(replace(p, version="2.4.1") if p is TORCH else p for p in packages))


def new_setuptools(project: Project) -> None:
    extra = (
        Pkg("setuptools", "81.0.0", "pyh_0", subdir="noarch"),
        Pkg("tensorboard", "2.19.0", "pyh_0", subdir="noarch"),
    )
    relocked(project, *PACKAGES, *extra)


def old_torch_and_setuptools(project: Project) -> None:
    project.edit(project.spec, "pytorch=2.5.1", "pytorch=2.0.1")
    packages = (replace(p, version="2.0.1") if p is TORCH else p for p in PACKAGES)
    relocked(project, *packages, Pkg("setuptools", "70.0.0", "pyh_0", subdir="noarch"))


def new_openmp(project: Project) -> None:
    relocked(project, *PACKAGES, Pkg("llvm-openmp", "18.1.8", "hf5423f3_1"))


def openblas(project: Project) -> None:
    relocked(project, *swapped(BLAS, replace(BLAS, build="26_linux64_openblas", needs={})))


def the_same_package_twice(project: Project) -> None:
    project.edit(project.spec, "  - numpy<2\n", "  - numpy<2\n  - numpy>=1.20\n")
    relocked(project, *PACKAGES)


def a_selector(project: Project) -> None:
    project.edit(project.spec, "  - numpy<2\n", "  - numpy<2  # [linux64]\n")


def a_misspelt_key(project: Project) -> None:
    project.edit(project.spec, "channels:", "chanels:")


def no_yaml(project: Project) -> None:
    project.edit(project.spec, "  - numpy<2\n", "  - [numpy\n")


def a_lock_of_another_yaml(project: Project) -> None:
    project.edit(project.lock, "- tiny.yaml", "- huge.yaml")


RELOCK = "tracelock env lock tiny"
RENDER = "tracelock env render tiny"
LOCK = "envs/tiny.conda-lock.yml"
PIN = "envs/tiny.linux-64.pin.txt"
ANEW = "make it anew: tracelock env lock"

CASES: dict[Callable[[Project], None], list[str]] = {
    a_changed_line: [
        f"envs/tiny.yaml:11: asks for 'numpy<1.26', but its lock holds numpy 1.26.4 py310hb13e2d6_0 ({RELOCK})"
    ],
    an_added_line: [f"envs/tiny.yaml:12: asks for 'pillow', but its lock does not hold pillow ({RELOCK})"],
    a_removed_line: [f"envs/tiny.yaml: was changed after {LOCK} was made from it (content hash) ({RELOCK})"],
    another_channel_order: [
        "envs/tiny.yaml:3: asks for the channels conda-forge, pytorch, but its lock was made over pytorch, conda-forge "
        f"({RELOCK})"
    ],
    no_lock: [f"envs/tiny.yaml: has no lock ({LOCK}) (make it: {RELOCK})"],
    no_pin: [f"envs/tiny.yaml: has no pin file for Snakemake ({PIN}) ({RENDER})"],
    a_truncated_lock: [
        f"{LOCK}:15: the file ends within a package, it is cut off: libblas: Expected 'object', got 'str' - at "
        f"'$.hash' ({ANEW})",
    ],
    a_lock_cut_between_packages: [
        f"envs/tiny.yaml:9: asks for 'python=3.10', but its lock does not hold python ({RELOCK})",
        f"envs/tiny.yaml:10: asks for 'pytorch=2.5.1=py3.10_cuda11.8*', but its lock does not hold pytorch ({RELOCK})",
        f"envs/tiny.yaml:11: asks for 'numpy<2', but its lock does not hold numpy ({RELOCK})",
        f"{PIN}:7: python 3.10.14 is not in {LOCK} ({RENDER})",
        f"{PIN}:8: numpy 1.26.4 is not in {LOCK} ({RENDER})",
        f"{PIN}:9: pytorch 2.5.1 is not in {LOCK} ({RENDER})",
    ],
    an_empty_lock: [f"{LOCK}: is empty or no conda-lock file ({ANEW})"],
    a_lock_of_another_platform: [
        f"{LOCK}: is a lock for osx-arm64, not for linux-64 (lock it for this one: add linux-64 to platforms: in the "
        "yaml, then tracelock env lock)"
    ],
    a_lock_of_another_format: [f"{LOCK}: is of lock format 2, expected 1 ({ANEW})"],
    a_package_without_sha256: [f"{LOCK}:27: mkl: has no sha256 ({ANEW})"],
    a_version_edited_by_hand: [f"{LOCK}:27: mkl: version 2023.1.0, but the address is that of mkl 2023.2.0 ({ANEW})"],
    a_pin_of_another_version: [
        f"{PIN}:8: numpy 1.25.0 py310hb13e2d6_0, but {LOCK}:38 has 1.26.4 py310hb13e2d6_0 ({RENDER})"
    ],
    a_pin_with_another_hash: [f"{PIN}:8: numpy has another sha256 than in {LOCK}:38 ({RENDER})"],
    a_pin_with_md5: [f"{PIN}:8: numpy has an MD5 alone, which can be forged ({RENDER})"],
    a_pin_without_hash: [f"{PIN}:8: numpy has no hash, so conda would take any file ({RENDER})"],
    a_pin_with_less: [f"{PIN}: lacks numpy 1.26.4 of {LOCK}:38 ({RENDER})"],
    a_pin_with_more: [f"{PIN}:10: pillow 10.3.0 is not in {LOCK} ({RENDER})"],
    a_pin_in_another_order: [f"{PIN}: holds the packages of {LOCK}, but is not what is rendered from it ({RENDER})"],
    a_pin_of_another_platform: [f"{PIN}: is a list for osx-arm64, but its name says linux-64 ({RENDER})"],
    a_pin_line_that_is_none: [f"{PIN}:5: is no address of a conda package ({RENDER})"],
    a_pin_of_nobody: [
        "envs/tinny.linux-64.pin.txt: is used by nobody: Snakemake looks for <yaml's name>.<platform>.pin.txt "
        "(rename or remove it)"
    ],
    a_pip_section: [
        "envs/tiny.yaml:13: pip section: a pin file cannot hold pip packages, so Snakemake would leave these out: "
        "torch-tb-profiler, einops==0.8 (take them from a channel, or leave them out)"
    ],
    defaults: [
        "envs/tiny.yaml:5: channel 'defaults' is Anaconda's own, whose licence most organisations must pay for "
        "(take the packages from conda-forge)",
        "envs/tiny.yaml:5: channels do not end with nodefaults: conda adds the machine's own, which are 'defaults' on "
        "most (add '  - nodefaults' as the last channel)",
    ],
    a_package_of_anaconda: [
        f"{LOCK}:27: mkl comes from Anaconda's defaults: "
        "https://repo.anaconda.com/pkgs/main/linux-64/mkl-2023.2.0-h84fe81f_50496.conda (take it from conda-forge)",
        f"{PIN}:5: mkl comes from Anaconda's defaults: "
        "https://repo.anaconda.com/pkgs/main/linux-64/mkl-2023.2.0-h84fe81f_50496.conda (take it from conda-forge)",
    ],
    a_package_from_a_folder: [
        f"{LOCK}:27: mkl comes from a folder (file:///srv/conda/conda-forge/linux-64/mkl-2023.2.0-h84fe81f_50496.conda),"
        " and conda compares no hash of such a file (serve the folder over http and name it in "
        "TRACELOCK_CHANNEL_MIRRORS)",
        f"{PIN}:5: mkl comes from a folder (file:///srv/conda/conda-forge/linux-64/mkl-2023.2.0-h84fe81f_50496.conda),"
        " and conda compares no hash of such a file (serve the folder over http and name it in "
        "TRACELOCK_CHANNEL_MIRRORS)",
    ],
    a_cpu_build: [
        f"{LOCK}:63: pytorch 2.5.1 py3.10_cpu_0 is a CPU build, but a CUDA build is asked for "
        "(name the build in envs/tiny.yaml: pytorch=*=*cuda*, and lock it with CONDA_OVERRIDE_CUDA=11.8)"
    ],
    a_cuda_build: [
        f"{LOCK}:63: pytorch 2.5.1 py3.10_cuda11.8_cudnn9.1.0_0 is a CUDA build, but a CPU build is asked for "
        "(name the build in envs/tiny.yaml: pytorch=*=*cpu*)"
    ],
    a_new_mkl: [
        f"{LOCK}:27: mkl 2024.1.0 beside pytorch 2.5.1: import torch fails: undefined symbol iJIT_NotifyEvent "
        f"(pytorch#123097) (ask for mkl<2024.1 in envs/tiny.yaml, then {RELOCK})"
    ],
    numpy_2: [
        f"{LOCK}:38: numpy 2.0.1 beside pytorch 2.4.1: torch was built against NumPy 1 and fails where it meets "
        f"arrays (ask for numpy<2 in envs/tiny.yaml, then {RELOCK})"
    ],
    new_setuptools: [
        f"{LOCK}:77: setuptools 81.0.0 beside tensorboard 2.19.0: tensorboard imports pkg_resources, which setuptools "
        f"81 dropped (ask for setuptools<81 in envs/tiny.yaml, then {RELOCK})"
    ],
    old_torch_and_setuptools: [
        f"{LOCK}:77: setuptools 70.0.0 beside pytorch 2.0.1: torch imports a part of pkg_resources that setuptools 70 "
        f"dropped (ask for setuptools<70 in envs/tiny.yaml, then {RELOCK})"
    ],
    new_openmp: [
        f"{LOCK}:77: llvm-openmp 18.1.8 beside pytorch 2.5.1: these builds of torch need an OpenMP runtime before 16 "
        f"(ask for llvm-openmp<16 in envs/tiny.yaml, then {RELOCK})"
    ],
    openblas: [
        f"{LOCK}:15: libblas 3.9.0 (26_linux64_openblas) beside pytorch 2.5.1: torch uses MKL: a second BLAS with "
        f"threads of its own slows both down (ask for libblas=*=*mkl in envs/tiny.yaml, then {RELOCK})"
    ],
    the_same_package_twice: [
        "envs/tiny.yaml:12: 'numpy>=1.20' asks for numpy again, after line 11 "
        "(write one line: conda-lock takes the last alone)"
    ],
    a_selector: [
        "envs/tiny.yaml:11: the platform selector [linux64] is read by conda-lock alone; conda and Snakemake ignore it "
        "(make one file for each platform)"
    ],
    a_misspelt_key: ["envs/tiny.yaml:2: unknown key 'chanels' (did you mean 'channels'?)"],
    no_yaml: ["envs/tiny.yaml:12: is not YAML: expected ',' or ']', but got '<stream end>'"],
    a_lock_of_another_yaml: [f"{LOCK}: was made from huge.yaml, not from envs/tiny.yaml ({RELOCK})"],
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    return make_project(Path())


def test_what_agrees_has_no_problem(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["env", "check"])
    assert ended.value.code == 0
    assert capsys.readouterr() == ("tiny: yaml, lock and pin agree\n", "")


@pytest.mark.parametrize("change", CASES, ids=lambda change: change.__name__)
def test_every_disagreement_is_told(
    project: Project, capsys: pytest.CaptureFixture[str], change: Callable[[Project], None]
) -> None:
    change(project)
    with pytest.raises(SystemExit) as ended:
        main(["env", "check"])
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [f"tracelock: error: {line}" for line in CASES[change]]
