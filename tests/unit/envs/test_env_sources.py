"""Environments as others lock and list them: pip's lines, uv, pixi. Right values from uv itself and from rattler."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prefixes import venv

from tracelock.cli import main
from tracelock.envs.diff import compare_manifests
from tracelock.envs.manifest import Manifest, read_manifest
from tracelock.envs.package import Package
from tracelock.envs.pip_lines import archive_name, logical_lines
from tracelock.errors import TracelockError

DATA = Path(__file__).parent / "data"


def listed(tmp_path: Path, text: str, name: str = "requirements.txt", platform: str = "linux-64") -> Manifest:
    (tmp_path / name).write_text(text, encoding="utf-8")
    return read_manifest(tmp_path / name, platform)


def versions(manifest: Manifest) -> dict[str, str | None]:
    return {package.name: package.version or package.constraint for package in manifest.packages}


FREEZE = """\
anyio @ file:///home/conda/feedstock_root/build_artifacts/anyio_1693488585952/work
Brotli @ file:///croot/brotli-split_1659616059936/work
setuptools @ file:///opt/wheels/setuptools-65.6.3-py3-none-any.whl#sha256={sha}
numpy==1.26.4
torch @ https://host.example.org/whl/cu118/torch-2.1.0%2Bcu118-cp310-cp310-linux_x86_64.whl#sha256={sha}
-e git+https://github.com/someone/trainer.git@0540a43971f4a8a16693a9de9de73c1072020769#egg=trainer
""".format(sha="a" * 64)


def test_pip_freeze_in_a_conda_environment_names_packages_without_versions(tmp_path: Path) -> None:
    found = listed(tmp_path, FREEZE)
    assert versions(found) == {
        "anyio": None, "brotli": None, "setuptools": "65.6.3", "numpy": "1.26.4", "torch": "2.1.0+cu118",
        "trainer": None,
    }  # fmt: skip
    other = listed(tmp_path, "anyio==4.0.0\nnumpy==1.26.4\n", "other.txt")
    changes = {(c.what, c.name, c.before) for c in compare_manifests(found, other)}
    assert ("removed", "brotli", "version not stated") in changes
    assert not [change for change in changes if change[1] in ("anyio", "numpy")]


def test_what_has_no_version_is_said_beside_what_differs(tmp_path: Path, capsys) -> None:
    listed(tmp_path, FREEZE, "a.txt")
    listed(tmp_path, "anyio==4.0.0\nnumpy==1.26.3\n", "b.txt")
    main_of("diff", tmp_path / "a.txt", tmp_path / "b.txt")
    assert capsys.readouterr().out.splitlines()[-1] == "versions not compared, as they are not stated: anyio"


def test_what_has_no_version_is_said_and_not_called_the_same(tmp_path: Path, capsys) -> None:
    listed(tmp_path, FREEZE, "a.txt")
    main_of("diff", tmp_path / "a.txt", tmp_path / "a.txt")
    assert capsys.readouterr().out.splitlines()[-1] == (
        "the same packages, as far as versions are stated; not stated for anyio, brotli"
    )


def main_of(*words: object) -> int:
    with pytest.raises(SystemExit) as stop:
        main(["env", *map(str, words)])
    return int(stop.value.code or 0)


SECTION = """\
dependencies:
  - python=3.10
  - pip:
      - --pre
      - --extra-index-url https://me:secret@host.example.org/simple
      - -r {file}
      - https://github.com/huggingface/transformers/archive/master.zip
      - flash-attn @ https://host.example.org/flash_attn-2.1.0+cu118-cp310-cp310-linux_x86_64.whl
      - https://host.example.org/sdists/pycocotools-2.0.7.tar.gz
      - requests~=2.31
      - pywin32==306 ; sys_platform == "win32"
      - uvloop==0.19.0; sys_platform != "win32" and python_version < "3.12"
      - tqdm==4.1 ; sys_platform == "linux"
      - tqdm==3.9; sys_platform == "darwin"
"""


def test_a_pip_section_with_options_addresses_and_markers(tmp_path: Path) -> None:
    found = listed(tmp_path, SECTION.format(file="requirements.txt"), "environment.yml")
    assert versions(found) == {
        "python": "3.10.*", "transformers": None, "flash-attn": "2.1.0+cu118", "pycocotools": "2.0.7",
        "requests": "~=2.31", "uvloop": "0.19.0", "tqdm": "4.1",
    }  # fmt: skip
    assert found.options == ("--pre", "--extra-index-url https://host.example.org/simple", "-r requirements.txt")
    assert found.unread == ("requirements.txt",)
    told = " / ".join(str(problem) for problem in found.warnings)
    assert "was not read" in told
    assert 'tqdm==3.9 is only for sys_platform == "darwin": not for linux-64' in told
    mac = listed(tmp_path, SECTION.format(file="requirements.txt"), "environment.yml", "osx-arm64")
    assert versions(mac)["tqdm"] == "3.9"
    assert "pywin32" in versions(listed(tmp_path, SECTION.format(file="x"), "environment.yml", "win-64"))


def test_two_files_whose_requirements_were_not_read_are_not_called_the_same(tmp_path: Path, capsys) -> None:
    listed(tmp_path, SECTION.format(file="one.txt"), "a.yml")
    assert main_of("diff", tmp_path / "a.yml", tmp_path / "a.yml") == 0
    out = capsys.readouterr().out
    assert "the same packages" not in out
    assert "unknown, because not read: one.txt" in out


def test_a_file_that_lies_beside_is_read_and_one_elsewhere_never(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("password==1\n")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "more.txt").write_text("attrs==23.1\n-r more.txt\n-r ../secret.txt\n")
    found = listed(tmp_path / "inner", "-r more.txt\nnumpy==1\n")
    assert versions(found) == {"attrs": "23.1", "numpy": "1"}
    assert "../secret.txt" in found.unread


def test_options_that_only_one_side_has_are_differences(tmp_path: Path) -> None:
    first, second = listed(tmp_path, "--pre\na==1\n", "a.txt"), listed(tmp_path, "a==1\n", "b.txt")
    assert [(c.what, c.name, c.before, c.after) for c in compare_manifests(first, second)] == [
        ("option", "--pre", "--pre", None)
    ]
    assert compare_manifests(first, first) == ()


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("https://h/a_b-1.0-py3-none-any.whl", ("a-b", "1.0")),
        ("https://h/torch-2.1.0%2Bcu118-cp310-cp310-linux_x86_64.whl", ("torch", "2.1.0+cu118")),
        ("https://h/scikit-learn-1.3.0.tar.gz", ("scikit-learn", "1.3.0")),
        ("https://h/a/b/archive/refs/tags/v1.zip", ("b", None)),
        ("https://h/group/b/-/archive/main/b-main.tar.gz", ("b", None)),
        ("https://h/master.zip", ("master", None)),
        ("file:///x/feedstock_root/build_artifacts/anyio_1/work", (None, None)),
    ],
)
def test_what_an_address_tells(address: str, expected: tuple[str | None, str | None]) -> None:
    assert archive_name(address) == expected


def test_continued_and_commented_lines() -> None:
    text = "a==1 \\\n  --hash=sha256:x # why\n\n# only a comment\nb==2 # c\nc==3 \\\n"
    assert list(logical_lines(text)) == [(1, "a==1    --hash=sha256:x"), (5, "b==2"), (6, "c==3")]


# ------------------------------------------------------------------ uv

# Made with uv 0.13.9 of a project with extras, a group, forks and markers (hosts renamed, sizes left out); what uv
# itself exports for each platform: `uv export --no-hashes --no-emit-project`, its markers evaluated.
UV = DATA / "uv.lock"


@pytest.mark.parametrize("platform", ["linux-64", "osx-arm64", "win-64"])
def test_a_uv_lock_brings_what_uv_itself_exports(platform: str) -> None:
    from packaging.markers import Marker

    from tracelock.envs.pip_lines import marker_environment

    expected = {}
    for line in (DATA / "uv-export.txt").read_text().splitlines():
        requirement, _, marker = line.partition(";")
        if not marker or Marker(marker).evaluate(marker_environment(platform, "3.11.0")):
            name, _, version = requirement.strip().partition("==")
            expected[name] = version
    assert versions(read_manifest(UV, platform)) == expected
    assert len(expected) == {"linux-64": 34, "osx-arm64": 21, "win-64": 22}[platform]


def test_a_venv_is_held_against_a_uv_lock(tmp_path: Path, capsys) -> None:
    packages = {p.name.replace("-", "_"): p.version for p in read_manifest(UV, "linux-64").packages}
    prefix = venv(tmp_path / "venv", "3.11.7", **packages)
    assert main_of("gate", prefix, UV) == 0
    wrong = venv(tmp_path / "wrong", "3.11.7", **{**packages, "numpy": "1.26.3"})
    assert main_of("gate", wrong, UV) == 1
    assert "numpy" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda text: text.replace("version = 1", "version = 9", 1), "is of lock format 9, expected 1"),
        (lambda text: text[: len(text) // 2], "is not TOML"),
        (lambda text: text.replace('virtual = "."', 'registry = "x"'), "names no project"),
    ],
)
def test_another_or_damaged_uv_lock_is_refused(tmp_path: Path, change, expected: str) -> None:
    (tmp_path / "uv.lock").write_text(change(UV.read_text()))
    with pytest.raises(TracelockError, match=expected) as caught:
        read_manifest(tmp_path / "uv.lock")
    assert len(caught.value.problems) == 1


# ------------------------------------------------------------------ pixi

PIXI = """\
version: {version}
environments:
  default:
    channels:
    - url: https://conda.anaconda.org/conda-forge/
    packages:
      linux-64:
      - conda: https://conda.anaconda.org/conda-forge/linux-64/python-3.12.3-hab00c5b_0_cpython.conda
      - conda: https://conda.anaconda.org/conda-forge/noarch/attrs-23.2.0-pyh71513ae_0.conda
      - pypi: https://files.example.org/torch-2.5.1-cp312-cp312-manylinux1_x86_64.whl
      - pypi: ./own
  cuda:
    channels: []
    packages:
      linux-64: []
packages:
{packages}
"""
NEW = """\
- conda: https://conda.anaconda.org/conda-forge/linux-64/python-3.12.3-hab00c5b_0_cpython.conda
  sha256: {a}
- conda: https://conda.anaconda.org/conda-forge/noarch/attrs-23.2.0-pyh71513ae_0.conda
  md5: {b}
- pypi: https://files.example.org/torch-2.5.1-cp312-cp312-manylinux1_x86_64.whl
  name: torch
  version: 2.5.1
  sha256: {c}
- pypi: ./own
  name: own
  version: 0.1.0
"""
OLD = """\
- kind: conda
  name: python
  version: 3.12.3
  build: hab00c5b_0_cpython
  url: https://conda.anaconda.org/conda-forge/linux-64/python-3.12.3-hab00c5b_0_cpython.conda
  sha256: {a}
- kind: conda
  name: attrs
  version: 23.2.0
  url: https://conda.anaconda.org/conda-forge/noarch/attrs-23.2.0-pyh71513ae_0.conda
  md5: {b}
- kind: pypi
  name: torch
  version: 2.5.1
  url: https://files.example.org/torch-2.5.1-cp312-cp312-manylinux1_x86_64.whl
  sha256: {c}
- kind: pypi
  name: own
  version: 0.1.0
  path: ./own
"""
DIGESTS = {"a": "a" * 64, "b": "b" * 32, "c": "c" * 64}


@pytest.mark.parametrize(("version", "packages"), [(4, OLD), (5, OLD), (6, NEW), (7, NEW)])
def test_pixi_locks_of_all_versions(tmp_path: Path, version: int, packages: str) -> None:
    found = listed(tmp_path, PIXI.format(version=version, packages=packages.format(**DIGESTS)), "pixi.lock")
    told = {(p.manager, p.name, p.version, p.build, p.md5, p.sha256) for p in found.packages}
    assert told == {
        ("conda", "python", "3.12.3", "hab00c5b_0_cpython", None, "a" * 64),
        ("conda", "attrs", "23.2.0", "pyh71513ae_0", "b" * 32, None),
        ("pip", "torch", "2.5.1", None, None, "c" * 64),
        ("pip", "own", "0.1.0", None, None, None),
    }
    assert "own is a folder of the project" in str(found.warnings[0])
    assert read_manifest(tmp_path / "pixi.lock@cuda", "linux-64").packages == ()


@pytest.mark.parametrize(
    ("name", "version", "platform", "expected"),
    [
        ("pixi.lock@cudo", 6, "linux-64", "has no environment 'cudo' .*did you mean 'cuda'"),
        ("pixi.lock", 9, "linux-64", "is of pixi's lock format 9, expected 4 to 7"),
        ("pixi.lock", 6, "osx-arm64", "locks 'default' for linux-64, not for osx-arm64"),
    ],
)
def test_another_pixi_lock_is_refused(tmp_path: Path, name: str, version: int, platform: str, expected: str) -> None:
    (tmp_path / "pixi.lock").write_text(PIXI.format(version=version, packages=NEW.format(**DIGESTS)))
    with pytest.raises(TracelockError, match=expected):
        read_manifest(tmp_path / name, platform)


WRITE = """
import os, sys
from rattler import PackageRecord, RepoDataRecord
from rattler.lock import LockChannel, LockFile, LockPlatform
from rattler.package.build_string import BuildString
platform = LockPlatform("linux-64")
lock = LockFile([platform])
channel = "https://conda.anaconda.org/conda-forge/"
lock.set_channels("default", [LockChannel(channel)])
for name, version, build in (("python", "3.12.3", "hab_0_cpython"), ("zlib", "1.2", "h1_0")):
    record = PackageRecord(name=name, version=version, build=BuildString(build), build_number=0, subdir="linux-64")
    record.sha256 = bytes.fromhex("a" * 64)
    file = f"{name}-{version}-{build}.conda"
    lock.add_conda_package("default", platform, RepoDataRecord(record, file, f"{channel}linux-64/{file}", channel))
lock.add_pypi_package("default", platform, "Py_Thing", "1.2.0", "https://h.example.org/Py_Thing-1.2.0-py3-none-any.whl")
lock.to_path(sys.argv[1])
sys.stdout.flush()
os._exit(0)
"""


def test_a_lock_that_rattler_writes_is_read(tmp_path: Path) -> None:
    pytest.importorskip("rattler")
    subprocess.run([sys.executable, "-c", WRITE, str(tmp_path / "pixi.lock")], check=True)
    found = read_manifest(tmp_path / "pixi.lock", "linux-64").packages
    assert {(p.name, p.version, p.build, p.sha256) for p in found} == {
        ("python", "3.12.3", "hab_0_cpython", "a" * 64), ("zlib", "1.2", "h1_0", "a" * 64),
        ("py-thing", "1.2.0", None, None),
    }  # fmt: skip


# ------------------------------------------------------------------ hostile

SEEDS = [
    SECTION.format(file="x.txt"),
    FREEZE,
    PIXI.format(version=6, packages=NEW.format(**DIGESTS)),
    UV.read_text(encoding="utf-8")[:4000] if UV.exists() else "",
    "@EXPLICIT\nhttps://h/c/noarch/a-1-0.conda#" + "a" * 64 + "\n",
    "version: 1\nmetadata:\n  content_hash: {}\n  channels: []\n  platforms: []\n  sources: []\npackage: []\n",
]
NAMES = st.sampled_from(["environment.yml", "requirements.txt", "uv.lock", "pixi.lock", "x.pin.txt", "conda-lock.yml"])


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Return a real file with pieces cut out, doubled, moved or replaced."""
    data = draw(st.sampled_from(SEEDS)).encode()
    for _ in range(draw(st.integers(1, 4))):
        start, end = sorted((draw(st.integers(0, len(data))), draw(st.integers(0, len(data)))))
        middle = draw(st.sampled_from([b"", data[start:end] * 2]) | st.binary(max_size=8))
        data = data[:start] + middle + data[end:]
    return data


@given(damaged(), NAMES)
def test_any_damaged_file_is_read_or_refused_in_short_lines(tmp_path_factory, data: bytes, name: str) -> None:
    path = tmp_path_factory.mktemp("damaged") / name
    path.write_bytes(data)
    lengths = [0]
    try:
        found = read_manifest(path, "linux-64")
        assert all(isinstance(package, Package) and package.name for package in found.packages)
        lengths += [len(problem.what) for problem in found.warnings]
        assert compare_manifests(found, found) == ()
    except TracelockError as refused:
        lengths += [len(problem.what) for problem in refused.problems]
    assert max(lengths) < 500
