"""Reading an environment file: each dependency as conda reads it, and all faults at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tracelock.envs.relock import find_conda_lock
from tracelock.envs.spec import parse_dependency, read_spec
from tracelock.errors import TracelockError


# What conda's MatchSpec makes of it (noted down from conda 26.7).
@pytest.mark.parametrize(
    ("text", "name", "version", "build", "channel"),
    [
        ("pip", "pip", "", None, None),
        ("python=3.10", "python", "3.10.*", None, None),
        ("python 3.10.*", "python", "3.10.*", None, None),
        ("a 1*", "a", "1.*", None, None),
        ("a==1.0", "a", "1.0", None, None),
        ("a 1.0", "a", "1.0", None, None),
        ("numpy<2", "numpy", "<2", None, None),
        ("numpy <2", "numpy", "<2", None, None),
        ("a >=1, <2", "a", ">=1,<2", None, None),
        ("a>=1|<0.5", "a", ">=1|<0.5", None, None),
        ("pytorch=2.5.1=py3.10_cuda11.8*", "pytorch", "2.5.1", "py3.10_cuda11.8*", None),
        ("libblas=*=*mkl", "libblas", "*", "*mkl", None),
        ("libblas * *mkl", "libblas", "*", "*mkl", None),
        ("a >=1.8 , < 2.0 py34_0", "a", ">=1.8,<2.0", "py34_0", None),
        ("a=*", "a", "*", None, None),
        ("conda-forge::libjpeg-turbo", "libjpeg-turbo", "", None, "conda-forge"),
        ("https://conda.anaconda.org/conda-forge::numpy=1", "numpy", "1.*", None, "conda-forge"),
        ("PyYAML", "pyyaml", "", None, None),
    ],
)
def test_dependencies(text: str, name: str, version: str, build: str | None, channel: str | None) -> None:
    found = parse_dependency(text)
    assert (found.name, found.version, found.build, found.channel) == (name, version, build, channel)


@pytest.mark.parametrize("text", ["", "=1", "a>=", "a==", "a=", "a[build=x]", "https://x.org/a-1-0.conda"])
def test_what_cannot_be_locked(text: str) -> None:
    with pytest.raises(ValueError, match=r"dependency|operator"):
        parse_dependency(text)


def test_all_faults_at_once(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(
        "name: x\nchannels: conda-forge\nplatforms: [linux64]\ndependencies:\n  - numpy>=\n  - conda:\n    - a\n"
        "  - pillow  # [win]\nprefx: /home/me\n"
    )
    with pytest.raises(TracelockError) as found:
        read_spec(path)
    assert [str(problem).removeprefix(str(path)) for problem in found.value.problems] == [
        ":9: unknown key 'prefx' (did you mean 'prefix'?)",
        ":8: the platform selector [win] is read by conda-lock alone; conda and Snakemake ignore it "
        "(make one file for each platform)",
        ":5: 'numpy>=' has no version after its operator (write name, name=version or name>=version)",
        ":6: dependencies: unknown section 'conda'",
        ":2: channels: expected a list",
        ":3: unknown platform 'linux64' (did you mean 'linux-64'?)",
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is not a mapping"),
        (b"- a\n", "is not a mapping"),
        (b"name: x\n", "has no dependencies"),
        (b"name: \xff\xfe\n", "is not UTF-8 (byte 6) (save it as UTF-8)"),
        (b"a: [\n", ":2: is not YAML"),
    ],
)
def test_what_is_no_environment(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(content)
    with pytest.raises(TracelockError) as found:
        read_spec(path)
    assert said in str(found.value)


def test_an_absent_file(tmp_path: Path) -> None:
    with pytest.raises(TracelockError, match=r"x\.yaml: cannot be read: No such file"):
        read_spec(tmp_path / "x.yaml")


def test_lines_and_pip(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("channels:\n- a\n- nodefaults\ndependencies:\n# why\n- b=1\n- pip:\n  - c\n  - d @ git+https://e\n")
    spec = read_spec(path)
    assert [(channel.text, channel.line) for channel in spec.channels] == [("a", 2), ("nodefaults", 3)]
    assert [(asked.name, asked.line) for asked in spec.dependencies] == [("b", 6)]
    assert [(line.text, line.line) for line in spec.pip] == [("c", 8), ("d @ git+https://e", 9)]
    assert spec.where(6) == f"{path}:6"


def test_conda_lock_reads_the_same(root: Path) -> None:
    """Every dependency of our files, and some odd ones, as an installed conda-lock reads it."""
    try:
        find_conda_lock()
    except TracelockError as error:
        pytest.skip(str(error))
    texts = ["python=3.10", "a==1.0=b", "a 1*", "a >=1.8 , < 2.0 py34_0", "conda-forge::b", "a * *", "a=1.0.*=b"]
    for path in (root / "envs").glob("*.yaml"):
        texts += [asked.text for asked in read_spec(path).dependencies]
    ours = [parse_dependency(text) for text in texts]
    # In a process of its own: importing conda-lock changes modules of the standard library.
    code = """
import json, sys
from conda_lock.src_parser.conda_common import conda_spec_to_versioned_dep
found = [conda_spec_to_versioned_dep(text, "main") for text in json.load(sys.stdin)]
print(json.dumps([[each.name, each.version, each.build, each.conda_channel] for each in found]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(texts), capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [[each.name, each.version, each.build, each.channel] for each in ours]
