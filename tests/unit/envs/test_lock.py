"""Reading conda-lock's files strictly, and the content hash."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml
from unit.envs.tiny import Project, make_project

from tracelock.envs.catalog import environments, find_environment
from tracelock.envs.checks import check_environment
from tracelock.envs.content_hash import content_hash
from tracelock.envs.lock import read_lock
from tracelock.envs.relock import find_conda_lock
from tracelock.envs.spec import read_spec
from tracelock.errors import TracelockError


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    return make_project(Path())


def said(path: Path) -> list[str]:
    with pytest.raises(TracelockError) as found:
        read_lock(path)
    return [str(problem) for problem in found.value.problems]


def test_the_content_hash_of_a_known_file(tmp_path: Path) -> None:
    """Noted down from conda-lock 4.0.3, which wrote it for this file."""
    path = tmp_path / "x.yaml"
    path.write_text(
        "channels: [pytorch, conda-forge, nodefaults]\nplatforms: [linux-64]\ndependencies:\n- python=3.10\n"
        "- libblas=*=*mkl\n- numpy<2\n- conda-forge::libjpeg-turbo\n- pip\n"
    )
    assert content_hash(read_spec(path), "linux-64") == KNOWN_HASH


KNOWN_HASH = "11ba47d9283138ad8379519e0ee991e01d73f907f2ae38fa5453bee981b1b5d0"


def test_comments_and_order_do_not_count_and_channels_do(project: Project) -> None:
    before = content_hash(read_spec(project.spec), "linux-64")
    project.edit(project.spec, "  - python=3.10\n", "")
    project.edit(project.spec, "  - numpy<2\n", "  # why\n  - numpy <2\n  - python 3.10.*\n")
    assert content_hash(read_spec(project.spec), "linux-64") == before
    project.edit(project.spec, "  - pytorch\n  - conda-forge\n", "  - conda-forge\n  - pytorch\n")
    assert content_hash(read_spec(project.spec), "linux-64") != before


def test_a_lock_as_packages(project: Project) -> None:
    lock = read_lock(project.lock)
    package = next(p for p in lock.for_platform("linux-64") if p.name == "pytorch").to_package()
    assert (package.name, package.version, package.build) == ("pytorch", "2.5.1", "py3.10_cuda11.8_cudnn9.1.0_0")
    assert (package.channel, package.subdir) == ("https://conda.anaconda.org/pytorch", "linux-64")
    assert package.sha256
    assert len(package.sha256) == 64


def test_every_truncation_is_noticed(project: Project) -> None:
    """Whatever byte a lock is cut off after: something is said, and nothing but a problem is raised."""
    whole = project.lock.read_bytes()
    environment = find_environment(Path(), "tiny")
    for length in range(0, len(whole.rstrip()), 7):
        project.lock.write_bytes(whole[:length])
        assert check_environment(environment), f"cut after {length} bytes"
    project.lock.write_bytes(whole.rstrip())
    assert check_environment(environment) == []


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("    md5: ", "    md6: ", ":15: libblas: Object contains unknown field 'md6' - at '$.hash'"),
        ("optional: false", "optional: perhaps", ":15: libblas: Expected 'bool', got 'str' - at '$.optional'"),
        ("manager: conda", "manager: npm", ":15: libblas: Invalid enum value 'npm' - at '$.manager'"),
        ("  sources:\n", "  sauces:\n", ": metadata: Object contains unknown field 'sauces'"),
        ("linux-64/libblas", "osx-64/libblas", ":15: libblas: is for linux-64, but the address is for osx-64"),
        ("name: libblas", "name: libblas2", ":15: libblas2: version 3.9.0, but the address is that of libblas 3.9.0"),
        (
            "https://conda",
            "ftp://conda",
            ":15: libblas: 'ftp://conda.anaconda.org/conda-forge/linux-64/libblas-3.9.0-16",
        ),
        ("- name: mkl\n  version: 2023.2.0", "- name: libblas\n  version: 2023.2.0", ":27: libblas is locked twice"),
        ("package:\n", "packages:\n", ": has no 'package': the file is cut off or no conda-lock file"),
        ("version: 1\n", "version: 1\nversion: [\n", ": is not YAML"),
    ],
)
def test_damage(project: Project, old: str, new: str, what: str) -> None:
    text = project.lock.read_text()
    assert old in text
    project.lock.write_text(text.replace(old, new, 1))
    assert any(f"envs/tiny.conda-lock.yml{what}" in line or what in line for line in said(project.lock)), said(
        project.lock
    )


def test_all_damaged_packages_at_once(project: Project) -> None:
    project.lock.write_text(project.lock.read_text().replace("optional: false", "optional: 0"))
    assert len(said(project.lock)) == 5


def test_a_hash_that_is_none(project: Project) -> None:
    document = yaml.safe_load(project.lock.read_text())
    document["package"][0]["hash"] = {"md5": "x" * 32, "sha256": "ab"}
    project.lock.write_text(yaml.safe_dump(document, sort_keys=False))
    assert [line.partition(" (")[0].rpartition(": ")[2] for line in said(project.lock)] == [
        f"'{'x' * 32}' is no md5",
        "'ab' is no sha256",
    ]


def test_another_platform_names_those_it_has(project: Project) -> None:
    with pytest.raises(TracelockError, match="is a lock for linux-64, not for osx-arm64"):
        read_lock(project.lock).for_platform("osx-arm64")


def test_unknown_environment(project: Project) -> None:
    with pytest.raises(TracelockError, match=r"there is no environment 'tinny' .did you mean 'tiny'"):
        find_environment(Path(), "tinny")


def test_the_root_lock_belongs_to_the_environment_that_it_names(project: Project) -> None:
    project.edit(project.lock, "- tiny.yaml", "- envs/tiny.yaml")
    project.lock.rename("conda-lock.yml")
    assert environments(Path())["tiny"].lock == Path("conda-lock.yml")
    project.spec.with_name("other.yaml").write_text(project.spec.read_text())
    assert environments(Path())["other"].lock == Path("envs/other.conda-lock.yml")


@pytest.mark.parametrize("name", ["pytorch-2.5-cu118", "pytorch-2.0-cu118", "pytorch-2.5-cpu", "analysis"])
def test_conda_lock_accepts_our_locks(root: Path, tmp_path: Path, name: str) -> None:
    """``conda-lock --check-input-hash`` finds nothing to do; its conda may only tell its version."""
    try:
        program = find_conda_lock()
    except TracelockError as error:
        pytest.skip(str(error))
    conda = tmp_path / "conda"
    conda.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "conda 26.7.1" && exit\nexit 7\n')
    conda.chmod(0o755)
    environment = find_environment(root, name)
    lock = tmp_path / "conda-lock.yml"
    lock.write_bytes(environment.lock.read_bytes())
    command = [program, "lock", "--kind", "lock", "--check-input-hash", "--conda", str(conda)]
    command += ["--file", str(environment.spec), "--lockfile", str(lock)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert "Spec hash already locked for ['linux-64']. Skipping solve." in done.stderr
    assert lock.read_bytes() == environment.lock.read_bytes()
