"""The gate: installed equals locked, nothing more and nothing less, and every way of differing has a name."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from prefixes import SITE, conda_prefix, conda_record, pip_install, venv

from tracelock.envs.difference import difference_table
from tracelock.envs.gate import check_packages, check_requirements, fallback_signs
from tracelock.envs.installed import read_installed
from tracelock.envs.manifest import read_manifest
from tracelock.envs.package import Package
from tracelock.envs.requirements import Requirement, lock_files, merge, read_requirements, same_version
from tracelock.errors import TracelockError


def kinds(check) -> list[tuple[str, str]]:
    return [(d.kind, d.name) for d in check.differences]


def test_an_environment_that_equals_its_lock_passes(tmp_path: Path) -> None:
    installed = read_installed(conda_prefix(tmp_path))
    check = check_packages(installed, installed.packages, deep=True)
    assert (check.ok, check.unlocked, check.differences) == (True, False, ())
    assert check.digest == installed.digest


CHANGES = {
    "version": {"version": "2.5.0"},
    "build": {"build": "py3.10_cpu_0"},
    "hash": {"sha256": "0" * 64},
}


@pytest.mark.parametrize("kind", CHANGES)
def test_each_way_of_differing_is_told_by_the_first_field_that_differs(tmp_path: Path, kind: str) -> None:
    installed = read_installed(conda_prefix(tmp_path))
    locked = [replace(p, **CHANGES[kind]) if p.name == "pytorch" else p for p in installed.packages]
    check = check_packages(installed, locked)
    assert (check.ok, check.unlocked) == (False, True)
    assert kinds(check) == [(kind, "pytorch")]


def test_nothing_more_and_nothing_less_torch_first(tmp_path: Path) -> None:
    prefix = conda_prefix(tmp_path)
    installed = read_installed(prefix)
    conda_record(prefix, "zlib", "1.3", "0", {})
    pip_install(prefix / SITE, "torch", "2.9.0")
    (prefix / "conda-meta" / "numpy-1.26.4-py310hb13e2d6_0.json").unlink()
    check = check_packages(read_installed(prefix), installed.packages)
    # Without its record, conda's numpy looks like pip's.
    assert kinds(check) == [("extra", "torch"), ("extra", "numpy"), ("missing", "numpy"), ("extra", "zlib")]
    table = difference_table(check.differences).splitlines()
    assert table[0].split() == ["what", "package", "expected", "found"]
    assert table[1].split() == ["extra", "torch", "–", "2.9.0"]


def test_a_pip_package_that_the_lock_names_is_none_too_many(tmp_path: Path) -> None:
    prefix = conda_prefix(tmp_path)
    locked = [*read_installed(prefix).packages, Package("torch-tb-profiler", "0.4.3", "pip", sha256="a" * 64)]
    assert kinds(check_packages(read_installed(prefix), locked)) == [("missing", "torch-tb-profiler")]
    pip_install(prefix / SITE, "torch_tb_profiler", "0.4.3")
    check = check_packages(read_installed(prefix), locked)
    assert check.ok
    assert check.digest == check_packages(replace(read_installed(prefix), packages=tuple(locked)), locked).digest


def test_a_record_without_a_hash_is_no_difference_and_is_told(tmp_path: Path) -> None:
    installed = read_installed(conda_prefix(tmp_path))
    bare = replace(installed, packages=tuple(replace(p, sha256=None) for p in installed.packages))
    check = check_packages(bare, installed.packages)
    assert check.ok
    assert "numpy, python, pytorch" in check.unknown["hash"]
    assert check.digest == installed.digest  # the lock completes what the record does not tell


def test_an_md5_counts_where_that_is_all_there_is(tmp_path: Path) -> None:
    installed = read_installed(conda_prefix(tmp_path))
    have = replace(installed, packages=tuple(replace(p, sha256=None, md5="a" * 32) for p in installed.packages))
    want = [replace(p, sha256=None, md5="b" * 32 if p.name == "numpy" else "a" * 32) for p in installed.packages]
    assert kinds(check_packages(have, want)) == [("hash", "numpy")]


def test_a_damaged_record_does_not_pass(tmp_path: Path) -> None:
    prefix = conda_prefix(tmp_path)
    locked = read_installed(prefix).packages
    (prefix / "conda-meta" / "x-1-0.json").write_text("{")
    assert kinds(check_packages(read_installed(prefix), locked)) == [("record", "x-1-0.json")]


def test_snakemakes_fallback_is_recognised_by_the_files_beside_the_prefix(tmp_path: Path) -> None:
    prefix = tmp_path / "0123abcd_"
    pin, loose = tmp_path / "0123abcd_.pin.txt", tmp_path / "0123abcd_.yaml"
    pin.write_text("@EXPLICIT\n")
    assert fallback_signs(prefix) == []
    loose.write_text("dependencies: []\n")
    assert [d.kind for d in fallback_signs(prefix)] == ["fallback"]
    os.utime(loose, (1, 1))  # left from an attempt before the pin was mended
    assert fallback_signs(prefix) == []


LOCK = """\
# a comment
--index-url https://example.org/simple
numpy==2.4.6 \\
    --hash=sha256:{a} \\
    --hash=sha256:{b}
    # via torch
torch==2.13.0+cpu ; sys_platform != 'darwin' --hash=sha256:{a}
torch==2.13.0 ; sys_platform == 'darwin' --hash=sha256:{b}
tomli==2.0 ; python_version < "3.11"
""".format(a="a" * 64, b="b" * 64)


def lock(tmp_path: Path, text: str = LOCK, name: str = "base.lock") -> Path:
    (tmp_path / name).write_text(text)
    return tmp_path / name


def test_a_requirement_lock_is_read_as_pip_reads_it(tmp_path: Path) -> None:
    path = lock(tmp_path)
    numpy, torch = read_requirements(path, "3.11.7")
    assert numpy == Requirement("numpy", "2.4.6", ("a" * 64, "b" * 64), f"{path}:3")
    assert (torch.version, torch.where) == ("2.13.0+cpu", f"{path}:7")
    assert [r.name for r in read_requirements(path, "3.10.2")] == ["numpy", "torch", "tomli"]


def test_every_line_that_pins_nothing_is_told_at_once(tmp_path: Path) -> None:
    path = lock(tmp_path, "numpy>=1\nscipy==1.*\n???\nrich==14.0\n")
    with pytest.raises(TracelockError) as caught:
        read_requirements(path)
    assert [problem.where for problem in caught.value.problems] == [f"{path}:{n}" for n in (1, 2, 3)]


def test_two_files_that_pin_different_versions_are_told() -> None:
    one, two = (Requirement("numpy", version, (), f"{version}.lock:1") for version in ("2.0", "2.1"))
    with pytest.raises(TracelockError, match=r"2\.1\.lock:1: pins numpy 2\.1, but 2\.0\.lock:1 pins 2\.0"):
        merge([[one], [two]])


@pytest.mark.parametrize(
    ("locked", "installed", "same"),
    [
        ("2.13.0", "2.13.0+cu126", True),
        ("2.13.0+cpu", "2.13.0", False),
        ("2.13.0+cpu", "2.13.0+cpu", True),
        ("1.0", "1.0.0", True),
        ("1.0", "1.1", False),
        ("1.0", None, False),
        ("not a version", "not a version", True),
    ],
)
def test_versions_agree_as_pip_takes_them(locked: str, installed: str | None, same: bool) -> None:
    assert same_version(locked, installed) is same


def requirement(**versions: str) -> dict[str, Requirement]:
    return {name: Requirement(name, version, (), "base.lock:1") for name, version in versions.items()}


def test_a_venv_is_held_against_its_lock_and_extra_packages_are_only_recorded(tmp_path: Path) -> None:
    installed = read_installed(venv(tmp_path, numpy="2.0", rich="14.0", mine="1"))
    check = check_requirements(installed, requirement(numpy="2.0"), requirement(rich="14.0", pytest="9"))
    assert (check.ok, check.unlocked) == (True, False)
    assert [(d.kind, d.name, d.fatal) for d in check.differences] == [("extra", "mine", False)]


def test_a_venv_that_lacks_or_changed_a_locked_package_does_not_pass(tmp_path: Path) -> None:
    installed = read_installed(venv(tmp_path, numpy="2.0", rich="13.0"))
    check = check_requirements(installed, requirement(numpy="2.1", scipy="1.0"), requirement(rich="14.0"))
    assert (check.ok, check.unlocked) == (False, True)
    assert kinds(check) == [("version", "numpy"), ("version", "rich"), ("missing", "scipy")]


def test_a_torch_of_the_machine_marks_results_without_stopping_them(tmp_path: Path) -> None:
    installed = read_installed(venv(tmp_path, numpy="2.0", torch="2.5.0"))
    check = check_requirements(installed, requirement(numpy="2.0"), {})
    assert (check.ok, check.unlocked) == (True, True)


def test_the_lock_of_torch_is_the_one_that_names_what_is_installed(root: Path) -> None:
    folder = root / "requirements"
    for version, name in (("2.13.0+cpu", "torch-cpu.lock"), ("2.13.0+cu130", "torch-cuda.lock")):
        must, may = lock_files(folder, version)
        assert [path.name for path in must] == ["base.lock", name]
        assert [path.name for path in may] == ["dev.lock"]
    assert [path.name for path in lock_files(folder, "1.0")[0]] == ["base.lock"]


# ------------------------------------------------------------------ the program that the workflow calls


def program(root: Path, *words: str, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "scripts" / "snapshot_env.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


FILES = {"environment.yml", "explicit.txt", "packages.json", "check.json", "machine.json"}


def test_the_program_records_this_very_environment(root: Path, tmp_path: Path) -> None:
    done = program(root, "--environment", "default", "--driver", str(root / "requirements"), "--output", str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} >= FILES
    check = json.loads((tmp_path / "check.json").read_text())
    assert (check["schema"], check["environment"]) == ("tracelock/envcheck/1", "default")
    assert done.returncode == (0 if check["ok"] else 1)
    assert all(set(lock) == {"file", "sha256"} for lock in check["locks"])
    packages = json.loads((tmp_path / "packages.json").read_text())
    numpy = next(package for package in packages["packages"] if package["name"] == "numpy")
    import numpy as installed

    assert numpy["version"] == installed.__version__
    assert packages["digest"] == check["digest"]


def test_the_program_stops_at_a_difference_unless_it_is_allowed(root: Path, tmp_path: Path) -> None:
    prefix = conda_prefix(tmp_path / "prefix")
    text = "@EXPLICIT\n" + "".join(f"{p.url}#{p.sha256}\n" for p in read_installed(prefix).packages)
    pin = lock(tmp_path, text.replace("numpy-1.26.4", "numpy-1.26.3"), "e.linux-64.pin.txt")
    words = ["--environment", "e", "--prefix", str(prefix), "--lock", str(pin), "--output", str(tmp_path / "out")]
    stopped = program(root, *words)
    assert stopped.returncode == 1
    lines = stopped.stderr.splitlines()
    assert lines[0].split() == ["what", "package", "expected", "found"]
    assert lines[1].split() == ["version", "numpy", "1.26.3", "1.26.4"]
    assert lines[2].startswith("tracelock: error: e: is not what its lock says: 1 difference (")
    allowed = program(root, *words, "--allow-unlocked")
    assert allowed.returncode == 0
    check = json.loads((tmp_path / "out" / "check.json").read_text())
    assert (check["ok"], check["unlocked"]) == (False, True)


def test_without_a_lock_nothing_is_claimed(root: Path, tmp_path: Path) -> None:
    prefix = conda_prefix(tmp_path / "prefix")
    done = program(root, "--environment", "e", "--prefix", str(prefix), "--output", str(tmp_path / "out"))
    assert done.returncode == 0
    check = json.loads((tmp_path / "out" / "check.json").read_text())
    assert (check["ok"], check["unlocked"]) == (None, True)


def test_the_gate_runs_inside_a_bare_python_310(root: Path, tmp_path: Path, python310: str) -> None:
    prefix = conda_prefix(tmp_path / "prefix")
    pin = lock(tmp_path, "@EXPLICIT\n" + "".join(f"{p.url}#{p.sha256}\n" for p in read_installed(prefix).packages))
    words = ["--environment", "e", "--prefix", str(prefix), "--lock", str(pin), "--output", str(tmp_path / "out")]
    command = [python310, "-I", str(root / "scripts" / "snapshot_env.py"), *words]
    code = f"import runpy, sys; sys.path.insert(0, {str(root / 'scripts')!r}); sys.argv = {command[2:]!r}; " + (
        f"runpy.run_path({command[2]!r}, run_name='__main__')"
    )
    done = subprocess.run([python310, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out" / "check.json").read_text())["ok"] is True


@pytest.fixture
def python310() -> str:
    names = [shutil.which("python3.10"), *map(str, Path.home().glob(".pyenv/versions/3.10.*/bin/python3.10"))]
    found = next((name for name in names if name and starts(name)), None)
    if not found:
        pytest.skip("no python3.10 was found on this machine")
    return found


def starts(name: str) -> bool:
    return subprocess.run([name, "--version"], capture_output=True, check=False).returncode == 0


def test_a_driver_that_conda_made_has_no_lock_of_ours(root: Path, tmp_path: Path) -> None:
    prefix = conda_prefix(tmp_path / "prefix")
    words = ["--environment", "e", "--prefix", str(prefix), "--output", str(tmp_path / "out")]
    done = program(root, *words, "--driver", str(root / "requirements"))
    assert done.returncode == 0, done.stderr
    check = json.loads((tmp_path / "out" / "check.json").read_text())
    assert (check["ok"], check["unlocked"]) == (None, True)


def test_a_conda_lock_is_a_lock_for_no_venv_and_the_other_way_round(root: Path, tmp_path: Path) -> None:
    environment = venv(tmp_path / "venv", numpy="2.0")
    words = ["--environment", "e", "--output", str(tmp_path / "out"), "--prefix"]
    done = program(root, *words, str(environment), "--lock", str(root / "conda-lock.yml"))
    assert done.returncode == 2
    assert "is a lock for conda" in done.stderr
    done = program(root, *words, str(conda_prefix(tmp_path / "conda")), "--lock", str(root / "requirements/base.lock"))
    assert done.returncode == 2
    assert "is neither a conda-lock file nor a pin file" in done.stderr


def test_a_lock_of_another_platform_is_one_line(root: Path, tmp_path: Path) -> None:
    prefix = conda_prefix(tmp_path / "prefix")
    words = ["--environment", "e", "--prefix", str(prefix), "--output", str(tmp_path / "out")]
    done = program(root, *words, "--lock", str(root / "conda-lock.yml"), "--platform", "osx-arm64")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "is a lock for linux-64, not for osx-arm64" in done.stderr


def test_every_package_of_a_real_lock_is_missing_from_another_environment(root: Path, tmp_path: Path) -> None:
    locked = read_manifest(root / "conda-lock.yml", "linux-64").packages
    check = check_packages(read_installed(conda_prefix(tmp_path)), locked)
    assert len(check.differences) >= len(locked) - 3
    assert check.differences[0].name.startswith("pytorch")
