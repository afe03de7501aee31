"""A snapshot can be built again by somebody else, and tells nothing of its owner."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from prefixes import SITE, conda_prefix, conda_record, pip_install, venv

from tracelock.envs.asked import asked_for, channel_priority, read_history, without_address, without_paths
from tracelock.envs.installed import read_installed
from tracelock.envs.machine import git_state, machine_facts, virtual_packages
from tracelock.envs.manifest import read_manifest
from tracelock.envs.package import Package
from tracelock.envs.snapshot import (
    channel_of,
    environment_yaml,
    explicit_list,
    packages_document,
    pip_requirement,
    write_snapshot,
)
from tracelock.envs.snapshot import pytorch_indexes as indexes

VCS = {"url": "https://github.com/NVIDIA/dllogger.git", "vcs_info": {"vcs": "git", "commit_id": "0540a43"}}


def snapshot_of(prefix: Path, **options) -> dict:
    return yaml.safe_load(environment_yaml("bench", read_installed(prefix), **options))


def test_environment_yml_names_builds_and_mixed_channels_and_no_prefix(tmp_path: Path) -> None:
    document = snapshot_of(conda_prefix(tmp_path))
    assert document == {
        "name": "bench",
        # pytorch has one package, conda-forge two: the special one comes first.
        "channels": ["pytorch", "conda-forge", "nodefaults"],
        "dependencies": [
            "conda-forge::numpy=1.26.4=py310hb13e2d6_0",
            "conda-forge::python=3.10.14=hd12c33a_0_cpython",
            "pytorch::pytorch=2.5.1=py3.10_cuda11.8_cudnn9.1.0_0",
        ],
    }


def test_without_builds_other_platforms_can_use_it(tmp_path: Path) -> None:
    document = snapshot_of(conda_prefix(tmp_path), builds=False)
    assert "conda-forge::numpy=1.26.4" in document["dependencies"]


def test_pip_packages_keep_their_repository_and_local_ones_are_no_strangers_package(tmp_path: Path) -> None:
    prefix = conda_prefix(tmp_path)
    pip_install(prefix / SITE, "dllogger", "1.0.0", VCS)
    pip_install(prefix / SITE, "secret-tool", "1.0", {"url": "file:///home/me/tool", "dir_info": {"editable": True}})
    installed = read_installed(prefix)
    text = environment_yaml("bench", installed)
    document = yaml.safe_load(text)
    assert document["dependencies"][-2:] == [
        "pip",
        {"pip": ["dllogger @ git+https://github.com/NVIDIA/dllogger.git@0540a43"]},
    ]
    assert "# secret-tool==1.0: installed from a folder of this machine, editable" in text
    assert "/home/me" not in text
    assert list(packages_document("bench", installed)["unreproducible"]) == ["secret-tool"]
    # conda env export would have written dllogger==1.0.0, which an index answers with another package.
    assert "dllogger==1.0.0" not in explicit_list(installed, {})


@pytest.mark.parametrize(
    ("direct_url", "expected"),
    [
        (None, "x==1"),
        (VCS, "x @ git+https://github.com/NVIDIA/dllogger.git@0540a43"),
        ({**VCS, "subdirectory": "py"}, "x @ git+https://github.com/NVIDIA/dllogger.git@0540a43#subdirectory=py"),
        ({"url": "https://h/x.whl", "archive_info": {}}, "x @ https://h/x.whl#sha256=" + "a" * 64),
    ],
)
def test_lines_for_pip(direct_url, expected: str) -> None:
    sha = "a" * 64 if direct_url and "archive_info" in direct_url else None
    assert pip_requirement(Package("x", "1", "pip", sha256=sha, direct_url=direct_url)) == expected


def test_a_build_of_pytorchs_own_index_names_it() -> None:
    torch = [Package("torch", "2.5.1+cu118", "pip"), Package("torchvision", "0.20.1+cu118", "pip")]
    assert [index.rpartition("/")[2] for index in indexes(torch)] == ["cu118"]
    assert indexes([Package("torch", "2.5.1", "pip"), Package("torch-mine", "1+local", "pip")]) == []


def test_a_venv_is_python_and_a_pip_section_and_its_list_has_the_hashes_of_its_lock(tmp_path: Path) -> None:
    prefix = venv(tmp_path, numpy="2.4.6", rich="14.0")
    document = snapshot_of(prefix)
    assert document["dependencies"] == ["python=3.11.7", "pip", {"pip": ["numpy==2.4.6", "rich==14.0"]}]
    text = explicit_list(read_installed(prefix), {"numpy": ("a" * 64, "b" * 64)})
    assert text == f"# python: 3.11.7\nnumpy==2.4.6 --hash=sha256:{'a' * 64} --hash=sha256:{'b' * 64}\nrich==14.0\n"


def test_the_explicit_list_reads_back_as_the_same_packages(tmp_path: Path) -> None:
    installed = read_installed(conda_prefix(tmp_path))
    text = explicit_list(installed, {})
    assert text.splitlines()[:2] == ["# platform: linux-64", "@EXPLICIT"]
    assert "/python-3.10.14-" in text.splitlines()[2]
    (tmp_path / "pin.txt").write_text(text)
    again = {p.name: (p.version, p.build, p.sha256) for p in read_manifest(tmp_path / "pin.txt").packages}
    assert again == {p.name: (p.version, p.build, p.sha256) for p in installed.conda}


def test_a_package_without_an_address_is_a_comment_in_the_explicit_list(tmp_path: Path) -> None:
    conda_record(tmp_path, "mine", "1", "0", {}, url=None)
    assert "# mine 1 0: its record has no address" in explicit_list(read_installed(tmp_path), {})


def test_a_snapshots_bytes_depend_on_what_is_installed_alone(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_snapshot(tmp_path / f"out-{name}", "bench", read_installed(conda_prefix(tmp_path / name)), {})
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / f"out-{name}").iterdir()} for name in ("a", "b")
    )
    assert first == second
    assert set(first) == {"environment.yml", "environment.nobuilds.yml", "explicit.txt", "packages.json"}
    assert str(tmp_path).encode() not in b"".join(first.values())
    manifest = read_manifest(tmp_path / "out-a")
    assert manifest.packages == read_installed(tmp_path / "a").packages


@pytest.mark.parametrize(
    ("channel", "url", "expected"),
    [
        ("https://conda.anaconda.org/conda-forge", None, "conda-forge"),
        ("https://conda.anaconda.org/conda-forge/linux-64", None, "conda-forge"),
        ("pytorch", None, "pytorch"),
        (None, "https://conda.anaconda.org/nvidia/label/cuda-11.8.0/noarch/a-1-0.conda", "nvidia/label/cuda-11.8.0"),
        ("https://repo.anaconda.com/pkgs/main/linux-64", None, "pkgs/main"),
        ("https://mirror.example.org/conda/pytorch", None, "https://mirror.example.org/conda/pytorch"),
    ],
)
def test_short_names_of_channels(channel, url, expected: str) -> None:
    assert channel_of(Package("a", "1", channel=channel, url=url)) == expected


HISTORY = """\
==> 2024-05-01 10:00:00 <==
# cmd: /home/me/miniconda3/bin/conda env create --file /home/me/work/environment.yml --prefix /home/me/envs/x
# conda version: 24.7.1
+conda-forge/linux-64::numpy-1.26.4-py310hb13e2d6_0
# update specs: ['numpy', 'pytorch::pytorch=2.5.1']
==> 2024-05-02 10:00:00 <==
# cmd: /home/me/miniconda3/bin/conda install -p /home/me/envs/x scipy
# update specs: scipy, rich
"""


def test_what_was_asked_for_is_kept_without_the_paths_of_who_asked(tmp_path: Path) -> None:
    prefix = conda_prefix(tmp_path)
    conda_record(prefix, "rich", "14", "0", {}, requested_spec="rich>=13")
    (prefix / "conda-meta" / "history").write_text(HISTORY)
    first, second = read_history(prefix)
    assert first == {
        "date": "2024-05-01 10:00:00",
        "command": "conda env create --file environment.yml --prefix PREFIX",
        "conda_version": "24.7.1",
        "update_specs": ["numpy", "pytorch::pytorch=2.5.1"],
    }
    assert second["update_specs"] == ["scipy", "rich"]
    asked = asked_for(read_installed(prefix))
    assert asked["specs"] == {"rich": "rich>=13"}
    assert "/home/me" not in json.dumps(asked)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("http://host:8000/linux-64::python==3.11.7=0_cpython", "python==3.11.7=0_cpython"),
        ("https://conda.anaconda.org/conda-forge/noarch::attrs==23.2.0=0", "conda-forge::attrs==23.2.0=0"),
        ("https://u:p@host/t/tk-1/c/linux-64/zlib-1.2-h1_0.conda", "zlib-1.2-h1_0.conda"),
        ("numpy<2", "numpy<2"),
        ("pytorch::pytorch=2.5.1=py3.10_cuda11.8*", "pytorch::pytorch=2.5.1=py3.10_cuda11.8*"),
        ("a[url=http://host/c/a-1-0.conda,version='>1']", "a[url=a-1-0.conda,version='>1']"),
    ],
)
def test_what_was_asked_for_never_names_a_mirror(spec: str, expected: str) -> None:
    assert without_address(spec) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("conda create -p '/a b/c' x", "conda create -p PREFIX x"),
        (
            "conda create --prefix=/a/c -c https://host/channel x",
            "conda create --prefix=PREFIX -c channel x",
        ),
        ("conda create -c https://conda.anaconda.org/a x", "conda create -c https://conda.anaconda.org/a x"),
    ],
)
def test_paths_and_addresses_of_mirrors_are_taken_out(command: str, expected: str) -> None:
    assert without_paths(command, Path("/nowhere")) == expected


def test_the_channel_priority_is_that_of_the_settings_in_force(tmp_path: Path, monkeypatch) -> None:
    for name in ("CONDA_CHANNEL_PRIORITY", "CONDARC", "MAMBARC", "CONDA_EXE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    unknown: dict[str, str] = {}
    assert channel_priority(tmp_path, unknown) is None
    assert "channel_priority" in unknown
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".condarc").write_text("channels: [a]\nchannel_priority: strict\n")
    assert channel_priority(tmp_path, {}) == "strict"
    (tmp_path / ".condarc").write_text("channel_priority: false\n")
    assert channel_priority(tmp_path, {}) == "disabled"
    monkeypatch.setenv("CONDA_CHANNEL_PRIORITY", "flexible")
    assert channel_priority(tmp_path, {}) == "flexible"


def test_facts_of_the_machine_agree_with_psutil_and_unknown_ones_say_why(root: Path) -> None:
    import psutil

    facts = machine_facts(root)
    assert facts["schema"] == "tracelock/machine/1"
    assert facts["ram_bytes"] == pytest.approx(psutil.virtual_memory().total, rel=0.01)
    assert facts["cpu"]["cores_logical"] == psutil.cpu_count()
    if not facts["gpus"]:
        assert "gpus" in facts["unknown"]
    for name in ("driver", "cuda_driver"):
        assert (facts[name] is None) == (name in facts["unknown"])
    if facts["glibc"]:
        assert facts["virtual_packages"]["__glibc"] == facts["glibc"]


def test_virtual_packages_obey_condas_overrides() -> None:
    assert virtual_packages("12.4", {})["__cuda"] == "12.4"
    assert virtual_packages("12.4", {"CONDA_OVERRIDE_CUDA": "11.8"})["__cuda"] == "11.8"
    assert "__cuda" not in virtual_packages("12.4", {"CONDA_OVERRIDE_CUDA": ""})
    assert "__cuda" not in virtual_packages(None, {})


def test_outside_a_repository_nothing_is_known_of_git(tmp_path: Path) -> None:
    assert git_state(tmp_path) == {"commit": None, "dirty": None}
