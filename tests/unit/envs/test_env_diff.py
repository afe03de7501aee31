"""Any two descriptions of environments can be compared, exports as people have them among them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prefixes import SITE, conda_prefix, pip_install, venv

from tracelock.cli import main
from tracelock.envs.diff import compare_machines, compare_manifests
from tracelock.envs.installed import read_installed
from tracelock.envs.manifest import Manifest, explicit_package, read_manifest
from tracelock.envs.package import Package, speed_rank
from tracelock.envs.snapshot import write_snapshot
from tracelock.errors import TracelockError


def manifest(*packages: Package) -> Manifest:
    return Manifest("yaml", "x", packages)


def changes(first: Package, second: Package) -> list[str]:
    return [change.what for change in compare_manifests(manifest(first), manifest(second))]


def write(tmp_path: Path, text: str, name: str = "environment.yml", encoding: str = "utf-8") -> Path:
    (tmp_path / name).write_bytes(text.encode(encoding))
    return tmp_path / name


TORCH = Package("pytorch", "2.5.1", build="py3.10_cuda11.8_cudnn9.1.0_0", sha256="a" * 64)
VCS = {"url": "https://github.com/a/b.git", "vcs_info": {"vcs": "git", "commit_id": "1"}}


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (TORCH, []),
        (replace(TORCH, version="2.5.0", build="x", sha256="b"), ["version"]),
        (replace(TORCH, build="py3.10_cpu_0", sha256="b"), ["build"]),
        (replace(TORCH, sha256="b" * 64), ["hash"]),
        (replace(TORCH, sha256=None, build=None), []),
        (replace(TORCH, version=None, build=None, sha256=None, constraint=">=2.5"), []),
        (replace(TORCH, version=None, build=None, sha256=None, constraint="2.5.*"), []),
        (replace(TORCH, version=None, build=None, sha256=None, constraint="<2.5"), ["version"]),
        (replace(TORCH, build="py3.10_cuda11.8*", sha256=None), []),
        (replace(TORCH, build="*cpu*", sha256=None), ["build"]),
    ],
)
def test_a_field_that_one_side_does_not_tell_is_no_difference(second: Package, expected: list[str]) -> None:
    assert changes(TORCH, second) == expected
    assert changes(second, TORCH) == expected


def test_a_repository_differs_from_an_index_and_from_another_commit() -> None:
    first = Package("apex", "0.1", "pip", direct_url=VCS)
    assert changes(first, Package("apex", "0.1", "pip")) == ["source"]
    other = {**VCS, "vcs_info": {"vcs": "git", "commit_id": "2"}}
    assert changes(first, replace(first, direct_url=other)) == ["source"]
    assert changes(first, replace(first, version=None, direct_url={**VCS, "url": "https://github.com/a/b"})) == []


def test_a_package_that_moved_from_conda_to_pip_is_one_change() -> None:
    found = compare_manifests(manifest(TORCH), manifest(Package("torch", "2.5.1", "pip")))
    assert [(c.what, c.name, c.before, c.after) for c in found] == [
        ("manager", "pytorch", f"conda: pytorch 2.5.1 {TORCH.build}", "pip: torch 2.5.1")
    ]


def test_what_decides_speed_comes_first() -> None:
    names = ["zlib", "llvm-openmp", "mkl", "cudnn", "cuda-cudart", "pytorch", "numpy", "attrs"]
    found = compare_manifests(manifest(), manifest(*(Package(name, "1") for name in names)))
    expected = ["pytorch", "cuda-cudart", "cudnn", "mkl", "llvm-openmp", "numpy", "attrs", "zlib"]
    assert [change.name for change in found] == expected
    assert {change.what for change in found} == {"added"}


def test_another_python_of_a_venv_is_a_difference(tmp_path: Path) -> None:
    first, second = (read_manifest(venv(tmp_path / v, v, numpy="2.0")) for v in ("3.11.7", "3.12.1"))
    assert [(c.name, c.before, c.after) for c in compare_manifests(first, second)] == [("python", "3.11.7", "3.12.1")]


versions = st.sampled_from(["1.0", "1.1", "2.0"])
packages = st.dictionaries(st.sampled_from(["pytorch", "mkl", "zlib", "numpy"]), versions).map(
    lambda found: manifest(*(Package(name, version) for name, version in found.items()))
)


@given(packages, packages)
def test_comparison_is_antisymmetric_complete_and_ordered(first: Manifest, second: Manifest) -> None:
    there, back = compare_manifests(first, second), compare_manifests(second, first)
    assert {(c.name, c.before, c.after) for c in there} == {(c.name, c.after, c.before) for c in back}
    before, after = ({p.name: p.version for p in m.packages} for m in (first, second))
    assert {c.name for c in there} == {n for n in before.keys() | after.keys() if before.get(n) != after.get(n)}
    ranks = [speed_rank(change.name) for change in there]
    assert ranks == sorted(ranks)
    assert compare_manifests(first, first) == ()


# ------------------------------------------------------------------ sources

YAML = """\
name: x
channels: [conda-forge]
dependencies:
  - python=3.10.14=hd12c33a_0_cpython
  - pytorch::pytorch>=2.5
  - numpy
  - numpy=1.26.4
  - libblas=*=*mkl
  - pip:
      - -e .
      - --extra-index-url https://host/simple
      - requests==2.32.3
      - print-on-steroids[exceptions]>=2  # for messages
      - git+https://github.com/NVIDIA/dllogger.git@0540a43971f4a8a16693a9de9de73c1072020769
      - apex @ git+ssh://git@github.com/a/apex-fork.git@v1
      - foo @ https://host/foo-1.whl#sha256={sha}
      - "???"
prefix: /home/me/envs/x
""".format(sha="a" * 64)


def test_an_export_is_read_with_everything_that_people_have_in_it(tmp_path: Path) -> None:
    found = read_manifest(write(tmp_path, YAML))
    packages = {p.name: p for p in found.packages}
    assert (packages["python"].version, packages["python"].build) == ("3.10.14", "hd12c33a_0_cpython")
    assert (packages["pytorch"].constraint, packages["pytorch"].channel) == (">=2.5", "pytorch")
    assert packages["numpy"].constraint == "1.26.4.*"
    assert packages["libblas"].build == "*mkl"
    assert packages["requests"].version == "2.32.3"
    assert packages["print-on-steroids"].constraint == ">=2"
    assert packages["dllogger"].direct_url["vcs_info"]["commit_id"].startswith("0540a439")
    assert packages["apex"].direct_url["url"] == "ssh://git@github.com/a/apex-fork.git"
    assert packages["foo"].sha256 == "a" * 64
    assert set(packages) == {
        *("python", "pytorch", "numpy", "libblas", "requests", "print-on-steroids", "dllogger", "apex", "foo")
    }
    told = [problem.what for problem in found.warnings]
    assert told == [
        "names a folder of whoever wrote it: prefix: /home/me/envs/x",
        "'???' is no requirement",
        "'-e .' is a folder of its writer's machine",
        "numpy stands here a second time and asks for something else",
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_any_encoding_and_line_end_reads_the_same(tmp_path: Path, encoding: str, ends: str) -> None:
    text = YAML.replace("name: x", "name: Umläut") if encoding != "utf-8" else YAML
    path = write(tmp_path, text.replace("\n", ends), encoding=encoding)
    assert read_manifest(path).packages == read_manifest(write(tmp_path, YAML, "plain.yml")).packages


def test_real_exports(shared: Path) -> None:
    folder = shared / "conda" / "exports"
    found = {path.name.split("-")[0]: read_manifest(path) for path in folder.iterdir()}
    # Counted with awk: lines below dependencies and below pip, without comments and what stands there twice.
    assert {name: count(found[name]) for name in ("raven", "icecloudnet", "nlp")} == {
        "raven": (17, 62), "icecloudnet": (276, 43), "nlp": (24, 3)
    }  # fmt: skip
    flowdock = {p.name: p for p in found["flowdock"].packages if p.direct_url}
    assert set(flowdock) == {"dllogger", "openfold", "power-spherical", "pytorch3d"}
    assert flowdock["power-spherical"].direct_url["url"] == "https://github.com/zrqiao/power_spherical.git"
    assert any("UTF-16" in problem.what for problem in found["raven"].warnings)
    assert any("prefix:" in problem.what for problem in found["icecloudnet"].warnings)
    assert any("second time" in problem.what for problem in found["nlp"].warnings)


def count(manifest: Manifest) -> tuple[int, int]:
    pip = sum(package.manager == "pip" for package in manifest.packages)
    return len(manifest.packages) - pip, pip


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("https://h/c/linux-64/a-b-1.0-py310_0.conda#" + "A" * 64, ("a-b", "1.0", "py310_0", None, "a" * 64)),
        ("https://h/c/noarch/a-1-0.tar.bz2#sha256:" + "b" * 64, ("a", "1", "0", None, "b" * 64)),
        ("https://h/c/noarch/a-1-0.tar.bz2#" + "c" * 32, ("a", "1", "0", "c" * 32, None)),
        ("https://h/c/linux-64/pytorch-2.5.1-py3.10_cuda11.8%2B_0.conda",
         ("pytorch", "2.5.1", "py3.10_cuda11.8+_0", None, None)),
        ("https://h/c/linux-64/no-build.conda", None),
        ("numpy=1.2", None),
    ],
)  # fmt: skip
def test_lines_of_an_explicit_list(line: str, expected: tuple | None) -> None:
    package = explicit_package(line)
    found = package and (package.name, package.version, package.build, package.md5, package.sha256)
    assert found == expected


def test_every_bad_line_of_a_pin_is_told_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, "@EXPLICIT\nhttps://h/c/noarch/a-1-0.conda\nnumpy\nhttps://h/readme\n", "p.txt")
    with pytest.raises(TracelockError) as caught:
        read_manifest(path)
    assert [problem.where for problem in caught.value.problems] == [f"{path}:3", f"{path}:4"]


def test_lock_pin_prefix_and_snapshot_of_one_environment_are_the_same(root: Path, tmp_path: Path) -> None:
    locks = [root / "conda-lock.yml", *sorted((root / "envs").glob("*.conda-lock.yml"))]
    pins = sorted((root / "envs").glob("*.pin.txt"))
    assert len(locks) >= len(pins) > 0
    for pin in pins:
        name = pin.name.split(".linux-64")[0]
        own = root / "envs" / f"{name}.conda-lock.yml"
        lock = read_manifest(own if own.exists() else root / "conda-lock.yml", "linux-64")
        assert compare_manifests(lock, read_manifest(pin)) == ()
    prefix = conda_prefix(tmp_path / "prefix")
    pip_install(prefix / SITE, "extra", "1.0", VCS)
    write_snapshot(tmp_path / "snapshot", "x", read_installed(prefix), {})
    first = read_manifest(prefix)
    for other in (tmp_path / "snapshot", tmp_path / "snapshot" / "packages.json"):
        assert compare_manifests(first, read_manifest(other)) == ()
    yaml = read_manifest(tmp_path / "snapshot" / "environment.yml")
    asked = {change.name for change in compare_manifests(first, yaml)}
    assert asked == {"pip"}  # which installs the others, and is not there yet


@pytest.mark.parametrize("text", ["", "just: yaml\n", "[1, 2]\n"])
def test_what_describes_no_environment_is_one_clear_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(TracelockError, match="describes no environment that is known"):
        read_manifest(write(tmp_path, text))


@pytest.mark.parametrize("text", ["dependencies: 1\n", "dependencies:\n  - [\n", "dependencies:\n\t- a\n"])
def test_a_damaged_export_is_one_clear_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(TracelockError) as caught:
        read_manifest(write(tmp_path, text))
    assert len(caught.value.problems) == 1


def test_machines_are_compared_fact_by_fact_without_what_always_differs() -> None:
    first = {"schema": "s", "host": "a", "driver": "535.1", "gpus": [{"name": "A100"}], "unknown": {"x": "y"}}
    second = {"schema": "s", "host": "b", "driver": "550.2", "gpus": [{"name": "H100"}, {"name": "H100"}]}
    assert compare_machines(first, second) == [
        ("driver", "535.1", "550.2"),
        ("gpus.0.name", "A100", "H100"),
        ("gpus.1.name", "None", "H100"),
    ]


# ------------------------------------------------------------------ the command


def run(capsys, *words: str) -> tuple[int, str, str]:
    code = 0
    try:
        main(["env", *map(str, words)])
    except SystemExit as stop:
        code = int(stop.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_command_shows_a_table_and_its_exit_code_on_request(tmp_path: Path, capsys) -> None:
    first = write(tmp_path, "dependencies:\n  - pytorch==2.0.1\n  - zlib==1.2\n", "a.yml")
    second = write(tmp_path, "dependencies:\n  - pytorch==2.5.1\n", "b.yml")
    code, out, _ = run(capsys, "diff", first, second)
    assert code == 0
    rows = [line.split() for line in out.splitlines()]
    assert ["torch", "version", "pytorch", "2.0.1", "2.5.1"] in rows
    assert ["other", "removed", "zlib", "1.2", "–"] in rows
    assert run(capsys, "diff", first, second, "--exit-code")[0] == 1
    assert run(capsys, "diff", first, first, "--exit-code")[:1] == (0,)
    document = json.loads(run(capsys, "diff", first, second, "--json")[1])
    assert document["schema"] == "tracelock/envdiff/1"
    assert document["changes"][0] == {
        "what": "version", "name": "pytorch", "manager": "conda", "tier": "torch", "before": "2.0.1", "after": "2.5.1"
    }  # fmt: skip


def test_the_command_snapshots_and_compares_what_it_wrote(tmp_path: Path, capsys) -> None:
    prefix = conda_prefix(tmp_path / "bench")
    pip_install(prefix / SITE, "mine", "1", {"url": "file:///home/me/mine", "dir_info": {}})
    code, out, err = run(capsys, "snapshot", prefix, "--output", tmp_path / "out")
    assert (code, out.startswith(f"{tmp_path}/out: 4 packages, digest ")) == (0, True)
    assert "mine: nobody else can install it" in err
    assert run(capsys, "diff", prefix, tmp_path / "out", "--exit-code")[0] == 0
    machine = json.loads((tmp_path / "out" / "machine.json").read_text())
    assert machine["schema"] == "tracelock/machine/1"


def test_the_command_holds_a_prefix_against_a_lock(tmp_path: Path, capsys, root: Path) -> None:
    prefix = conda_prefix(tmp_path / "bench")
    write_snapshot(tmp_path / "out", "x", read_installed(prefix), {})
    assert run(capsys, "gate", prefix, tmp_path / "out" / "explicit.txt", "--deep")[0] == 0
    code, out, err = run(capsys, "gate", prefix, root / "conda-lock.yml", "--platform", "linux-64")
    assert code == 1
    assert out.splitlines()[1].split()[:2] in (["missing", "pytorch-cuda"], ["hash", "pytorch"])
    assert len(err.splitlines()) == 1
