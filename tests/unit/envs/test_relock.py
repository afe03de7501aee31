"""``tracelock env lock``: what is asked of conda-lock, and what becomes of its answer."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from unit.envs.tiny import NUMPY, PACKAGES, Pkg, Project, entry, make_project

from tracelock.cli import main
from tracelock.envs.content_hash import VIRTUAL_PACKAGES, content_hash
from tracelock.envs.spec import read_spec

NEW_NUMPY = replace(NUMPY, version="1.26.3")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project, with a conda-lock and a conda of the test's first on PATH and nothing beside."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setattr("sys.executable", str(tools / "python"))
    for name in ("CONDA_EXE", "MAMBA_EXE", "TRACELOCK_CHANNEL_MIRRORS"):
        monkeypatch.delenv(name, raising=False)
    script(tools / "conda", "print('conda 26.1.1')")
    return make_project(Path())


def script(path: Path, code: str) -> None:
    path.write_text(f"#!{sys.base_prefix}/bin/python3\nimport json, os, sys\n{textwrap.dedent(code)}\n")
    path.chmod(0o755)


def conda_lock(
    project: Project, packages: tuple[Pkg, ...], host: str | None = None, content: str | None = None
) -> Path:
    """Make the conda-lock of the test: it notes down how it was called and answers with a lock of `packages`."""
    tools = Path.cwd().parent / "tools"
    spec = read_spec(project.spec)
    document = {
        "version": 1,
        "metadata": {
            "content_hash": {"linux-64": content or content_hash(spec, "linux-64")},
            "channels": [{"url": c.text, "used_env_vars": []} for c in spec.channels if c.text != "nodefaults"],
            "platforms": ["linux-64"],
            "sources": ["tiny.yaml"],
        },
        "package": [entry(replace(package, host=host) if host else package) for package in packages],
    }
    for item, package in zip(document["package"], packages, strict=True):  # type: ignore[call-overload]
        item["hash"]["sha256"] = package.digest("sha256")
    (tools / "answer.yml").write_text(yaml.safe_dump(document, sort_keys=False))
    script(
        tools / "conda-lock",
        """
        here = os.path.dirname(os.path.abspath(__file__))
        if sys.argv[1:] == ["--version"]:
            print("conda-lock, version 4.0.3"); sys.exit()
        condarc = os.environ.get("CONDARC")
        seen = {"arguments": sys.argv[1:], "condarc": condarc and open(condarc).read()}
        json.dump(seen, open(here + "/seen.json", "w"))
        target = sys.argv[sys.argv.index("--lockfile") + 1]
        head = "# conda-lock install -n YOURENV " + os.path.basename(target) + chr(10)
        open(target, "w").write(head + open(here + "/answer.yml").read())
        """,
    )
    return tools / "seen.json"


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["env", "lock", *words])
    return int(ended.value.code or 0)


def test_a_new_lock_and_its_pin(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    packages = (*(NEW_NUMPY if p is NUMPY else p for p in PACKAGES[:-1]), PACKAGES[-1], Pkg("pip", "26.0", "pyh_0"))
    seen = conda_lock(project, packages)
    assert run("tiny") == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "~ numpy 1.26.4 py310hb13e2d6_0 -> 1.26.3 py310hb13e2d6_0",
        "+ pip 26.0 pyh_0",
    ]
    assert said.err == "envs/tiny.conda-lock.yml: locked\n"
    assert NEW_NUMPY.url in project.pin.read_text()
    assert project.lock.read_text().startswith("# conda-lock install -n YOURENV tiny.conda-lock.yml\n")
    arguments = json.loads(seen.read_text())["arguments"]
    assert arguments[arguments.index("--conda") + 1].endswith("/tools/conda")
    assert arguments[arguments.index("--file") + 1] == str(project.spec.absolute())
    assert arguments[arguments.index("--platform") + 1] == "linux-64"
    assert arguments[arguments.index("--virtual-package-spec") + 1] == str(VIRTUAL_PACKAGES)
    assert sorted(path.name for path in project.spec.parent.iterdir()) == [
        *("tiny.conda-lock.yml", "tiny.linux-64.pin.txt", "tiny.yaml"),
    ]


def test_the_same_packages_leave_the_files(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    conda_lock(project, PACKAGES)
    before = project.lock.read_bytes(), project.pin.read_bytes()
    assert run("tiny") == 0
    assert capsys.readouterr().err == "envs/tiny.conda-lock.yml: unchanged: the same packages\n"
    assert (project.lock.read_bytes(), project.pin.read_bytes()) == before


def test_over_mirrors_the_lock_is_canonical(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACELOCK_CHANNEL_MIRRORS", "http://127.0.0.1:9/all pytorch=http://127.0.0.1:9/torch")
    seen = conda_lock(project, PACKAGES, host="http://127.0.0.1:9/all")
    answer = seen.with_name("answer.yml")
    answer.write_text(answer.read_text().replace("http://127.0.0.1:9/all/pytorch/", "http://127.0.0.1:9/torch/"))
    project.lock.unlink()
    assert run("tiny") == 0
    assert "127.0.0.1" not in project.lock.read_text() + project.pin.read_text()
    assert json.loads(seen.read_text())["condarc"].splitlines() == [
        "channel_priority: strict",
        "channel_alias: http://127.0.0.1:9/all",
        "custom_multichannels:",
        "  pytorch:",
        "    - http://127.0.0.1:9/torch",
    ]


def test_a_failed_solve_changes_nothing(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    tools = Path.cwd().parent / "tools"
    script(
        tools / "conda-lock",
        """
        if sys.argv[1:] == ["--version"]: print("conda-lock, version 2.5.8"); sys.exit()
        print("Locking dependencies for ['linux-64']...", file=sys.stderr)
        print("PackagesNotFoundError: The following packages are not available: tensorbored", file=sys.stderr)
        sys.exit(1)
        """,
    )
    before = {path.name: path.read_bytes() for path in project.spec.parent.iterdir()}
    assert run("tiny") == 1
    assert capsys.readouterr().err == (
        "tracelock: error: tiny could not be solved: PackagesNotFoundError: The following packages are not available: "
        "tensorbored (is the channel reachable, and does every package exist there? TRACELOCK_CHANNEL_MIRRORS names a "
        "mirror)\n"
    )
    assert {path.name: path.read_bytes() for path in project.spec.parent.iterdir()} == before


def test_another_content_hash_is_refused(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    conda_lock(project, PACKAGES, content="0" * 64)
    before = project.lock.read_bytes()
    assert run("tiny") == 1
    assert "conda-lock computed another content hash than tracelock does" in capsys.readouterr().err
    assert project.lock.read_bytes() == before


def test_a_broken_answer_is_refused(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    seen = conda_lock(project, PACKAGES)
    seen.with_name("answer.yml").write_text("version: 1\n")
    assert run("tiny") == 2
    assert "has no 'metadata': the file is cut off" in capsys.readouterr().err
    assert len(list(project.spec.parent.iterdir())) == 3


def test_pip_packages_are_refused_before_anything_is_solved(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = conda_lock(project, PACKAGES)
    project.edit(project.spec, "  - numpy<2\n", "  - numpy<2\n  - pip:\n    - einops\n")
    assert run("tiny") == 2
    assert "envs/tiny.yaml:13: pip section: a pin file cannot hold pip packages" in capsys.readouterr().err
    assert not seen.exists()


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (None, "tracelock: error: conda-lock is not installed (pip install 'conda-lock>=2')\n"),
        ("1.4.0", "is conda-lock 1.4.0, whose content hash later ones refuse (pip install 'conda-lock>=2')\n"),
    ],
)
def test_conda_lock_is_missing_or_old(
    project: Project, capsys: pytest.CaptureFixture[str], version: str | None, said: str
) -> None:
    if version:
        script(Path.cwd().parent / "tools" / "conda-lock", f"print('conda-lock, version {version}')")
    assert run("tiny") == 2
    assert capsys.readouterr().err.endswith(said)


def test_no_client(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    (Path.cwd().parent / "tools" / "conda").unlink()
    assert run("tiny") == 2
    assert (
        "there is no conda, mamba or micromamba on PATH (install one: tracelock conda install"
        in capsys.readouterr().err
    )


def test_the_client_that_is_named(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    tools = Path.cwd().parent / "tools"
    script(tools / "micromamba", "print('2.3.0')")
    seen = conda_lock(project, PACKAGES)
    assert run("tiny", "--client", "micromamba") == 0
    arguments = json.loads(seen.read_text())["arguments"]
    assert arguments[arguments.index("--conda") + 1] == str(tools / "micromamba")
    capsys.readouterr()
    assert run("tiny", "--client", "mambo") == 2
    assert "'mambo' is no conda, mamba or micromamba that runs" in capsys.readouterr().err
