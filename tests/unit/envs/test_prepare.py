"""Creating environments: the real Snakemake, with a conda of the test's that notes down what it is asked for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tracelock.envs import prepare as prepare_module
from tracelock.envs.clients import failed
from tracelock.envs.prepare import LOCK_NAME, Request, creation_lock, creation_variables, hold, prepare, snakemake_conda
from tracelock.errors import TracelockError

pytestmark = pytest.mark.workflow

SCRIPTS = Path(prepare_module.__file__).parents[2]

CONDA = f"""#!{sys.executable}
import json, os, sys, time
here = os.path.dirname(os.path.abspath(__file__))
words = sys.argv[1:]
def note(what):
    names = "CONDA_PKGS_DIRS", "CONDA_OVERRIDE_CUDA", "PYTHONNOUSERSITE", "PYTHONPATH"
    entry = {{"what": what, "pid": os.getpid(), "words": words, **{{name: os.environ.get(name) for name in names}}}}
    with open(here + "/log", "a") as log:
        log.write(json.dumps(entry) + chr(10))
if words == ["--version"]:
    print("conda 26.1.1")
elif words[0] == "info":
    print(json.dumps({{"platform": "linux-64", "conda_version": "26.1.1", "conda_prefix": here, "root_prefix": here}}))
elif words[0] == "config":
    print(json.dumps({{"get": {{"channel_priority": "strict"}}}}))
elif "create" in words:
    note("begin")
    if os.path.exists(here + "/fail") and words[0] == "create":
        sys.exit(open(here + "/fail").read())
    prefix = words[words.index("--prefix") + 1]
    os.makedirs(prefix + "/conda-meta", exist_ok=True)
    while os.path.exists(here + "/hold"):
        time.sleep(0.02)
    open(prefix + "/conda-meta/history", "w").close()
    note("end")
"""

SNAKEFILE = """
rule all:
    output: "done"
    conda: "envs/tiny.yaml"
    shell: "touch {output}"
"""


@dataclass
class Site:
    """A project, a conda and a folder of environments."""

    root: Path

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def prefix(self) -> Path:
        return self.root / "shared envs"

    def log(self) -> list[dict[str, Any]]:
        path = self.root / "bin" / "log"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def done(self) -> list[str]:
        return [entry["what"] for entry in self.log()]

    def environments(self) -> list[Path]:
        return sorted(path for path in self.prefix.glob("*_") if path.is_dir())

    def run(self, project: Path | None = None) -> subprocess.Popen[str]:
        """Start scripts/prepare_envs.py in a project."""
        return subprocess.Popen(
            [sys.executable, str(SCRIPTS / "prepare_envs.py"), "--conda-prefix", str(self.prefix)],
            cwd=project or self.project,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


def make_workflow(folder: Path) -> Path:
    (folder / "envs").mkdir(parents=True)
    (folder / "Snakefile").write_text(SNAKEFILE)
    (folder / "envs" / "tiny.yaml").write_text("channels: [conda-forge, nodefaults]\ndependencies: [python=3.10]\n")
    (folder / "envs" / "tiny.linux-64.pin.txt").write_text("# platform: linux-64\n@EXPLICIT\n")
    return folder


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    found = Site(tmp_path)
    (tmp_path / "bin").mkdir()
    conda = tmp_path / "bin" / "conda"
    conda.write_text(CONDA)
    conda.chmod(0o755)
    make_workflow(found.project)
    monkeypatch.chdir(found.project)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    for name in ("CONDA_PKGS_DIRS", "CONDA_OVERRIDE_CUDA", "CONDA_EXE", "MAMBA_EXE", "TRACELOCK_ENVIRONMENTS_HELD"):
        monkeypatch.delenv(name, raising=False)
    # As the installed tracelock finds itself.
    monkeypatch.setenv("PYTHONPATH", str(SCRIPTS))
    return found


def test_created_once_with_variables_of_its_own(site: Site) -> None:
    prepare(Request(site.prefix))
    assert len(site.environments()) == 1
    begin, end = site.log()
    assert (begin["what"], end["what"]) == ("begin", "end")
    assert begin["words"][:4] == ["create", "--quiet", "--no-default-packages", "--file"]
    assert begin["words"][4].endswith(".pin.txt")
    assert (begin["PYTHONNOUSERSITE"], begin["CONDA_OVERRIDE_CUDA"], begin["PYTHONPATH"]) == ("1", "11.8", None)
    cache = Path(begin["CONDA_PKGS_DIRS"])
    assert cache.parent == site.prefix
    assert not cache.exists()
    prepare(Request(site.prefix))
    assert len(site.log()) == 2


def test_what_the_user_set_is_kept() -> None:
    given = {"CONDA_OVERRIDE_CUDA": "12.4", "PYTHONPATH": "/x", "HOME": "/home/me", "PYTHONNOUSERSITE": ""}
    assert creation_variables(given) == {"CONDA_OVERRIDE_CUDA": "12.4", "HOME": "/home/me", "PYTHONNOUSERSITE": "1"}


def test_a_pin_that_fails_is_not_replaced(site: Site) -> None:
    """Snakemake would install the loose yaml and exit with 0."""
    url = "https://conda.anaconda.org/conda-forge/linux-64/numpy-1.26.4-py310_0.conda"
    (site.root / "bin" / "fail").write_text(f"ChecksumMismatchError: Conda detected a mismatch for url '{url}'.")
    with pytest.raises(TracelockError) as found:
        prepare(Request(site.prefix))
    assert found.value.exit_code == 1
    assert (": its pin cannot be installed: numpy-1.26.4-py310_0.conda is not the file that was locked") in str(
        found.value
    )
    assert [entry["words"][0] for entry in site.log()] == ["create"]
    assert site.environments() == []
    (site.root / "bin" / "fail").unlink()
    prepare(Request(site.prefix))
    assert len(site.environments()) == 1


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (
            "ChecksumMismatchError: Conda detected a mismatch between the expected content and downloaded content\n"
            "for url 'https://conda.anaconda.org/conda-forge/linux-64/numpy-1.26.4-py310_0.conda'.\n",
            "numpy-1.26.4-py310_0.conda is not the file that was locked (its hash differs) (a broken download or "
            "mirror: try again, or another mirror)",
        ),
        (
            "CondaHTTPError: HTTP 404 NOT FOUND for url <https://m.org/pytorch/linux-64/pytorch-2.5.1-0.tar.bz2>",
            "pytorch-2.5.1-0.tar.bz2 is not there any more (name a mirror that keeps old packages in "
            "TRACELOCK_CHANNEL_MIRRORS, or relock: tracelock env lock)",
        ),
        (
            "CondaHTTPError: HTTP 000 CONNECTION FAILED for url <https://m.org/conda-forge/noarch/a-1-0.conda>",
            "a-1-0.conda cannot be fetched: the channel does not answer (check network and proxy, or name a mirror in "
            "TRACELOCK_CHANNEL_MIRRORS)",
        ),
        (
            "conda-shim: error: sha256 mismatch for http://127.0.0.1:9/c/linux-64/a-1-0.conda\n  expected 1\n  got 2",
            "a-1-0.conda is not the file that was locked (its hash differs) (a broken download or mirror: try again, "
            "or another mirror)",
        ),
        (
            "Could not solve.\nCondaHTTPError: HTTP 000 CONNECTION FAILED for url <https://m.org/c/linux-64/repodata.json>",
            "https://m.org/c/linux-64/repodata.json cannot be fetched: the channel does not answer (check network and "
            "proxy, or name a mirror in TRACELOCK_CHANNEL_MIRRORS)",
        ),
        (
            "python-3.10.14 | 404 KB | ## 2%\nLinkError: post-link script failed for package conda-forge::x-1-0",
            "LinkError: post-link script failed for package conda-forge::x-1-0",
        ),
        (
            "[Errno 28] No space left on device",
            "a package does not fit on the disk (free space, or choose another folder with --conda-prefix)",
        ),
    ],
)
def test_what_a_client_says_becomes_one_line(output: str, said: str) -> None:
    error = failed("it failed", f"Looking for: ['x']\n{output}\nYou may try again.\n")
    assert (str(error), error.exit_code) == (f"it failed: {said}", 1)


def test_an_environment_without_a_pin_is_solved(site: Site) -> None:
    (site.project / "envs" / "tiny.linux-64.pin.txt").unlink()
    prepare(Request(site.prefix))
    assert [entry["words"][:2] for entry in site.log()] == [["env", "create"]] * 2
    assert len(site.environments()) == 1


def until_waiting(process: subprocess.Popen[str]) -> None:
    """Read what a process says until it waits for the lock."""
    assert process.stdout is not None
    assert any("waiting: another workflow creates environments" in line for line in process.stdout)


def until_begun(site: Site, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not site.done():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)


def test_two_workflows_on_one_prefix(site: Site) -> None:
    held = site.root / "bin" / "hold"
    held.touch()
    with site.run() as first:
        until_begun(site, first)
        with site.run(make_workflow(site.root / "other project")) as second:
            until_waiting(second)
            held.unlink()
            said = [first.communicate(timeout=120)[0], second.communicate(timeout=120)[0]]
    assert [first.returncode, second.returncode] == [0, 0], said
    assert site.done() == ["begin", "end"]


HOLDING = """
import sys
from pathlib import Path
from tracelock.envs.prepare import hold_for
release = hold_for(workflow, Path("failure.txt"))
onstart:
    release()
    sys.stderr.write("released" + chr(10))
rule all:
    output: "done"
    conda: "envs/tiny.yaml"
    shell: "sleep 1; touch {output}"
"""


def test_two_snakemakes_by_hand(site: Site) -> None:
    """Without `prepare`: the Snakefile holds the lock while its environments are made, and not while its jobs run."""
    other = make_workflow(site.root / "other project")
    (site.root / "bin" / "activate").write_text("")
    (site.root / "bin" / "bin").symlink_to(site.root / "bin")
    held = site.root / "bin" / "hold"
    held.touch()
    for folder in (site.project, other):
        (folder / "Snakefile").write_text(HOLDING)
    command = [sys.executable, "-m", "snakemake", "--sdm", "conda", "--conda-prefix", str(site.prefix), "--cores", "1"]
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, cwd=site.project, **streams) as first:
        until_begun(site, first)
        with subprocess.Popen(command, cwd=other, **streams) as second:
            until_waiting(second)
            held.unlink()
            said = [first.communicate(timeout=120)[0], second.communicate(timeout=120)[0]]
    assert [first.returncode, second.returncode] == [0, 0], said
    assert site.done() == ["begin", "end"]
    assert all("released" in text for text in said)


def test_killed_while_conda_goes_on(site: Site) -> None:
    """All in front are killed; the orphaned conda holds the lock until it ends. Then the work is done again."""
    held = site.root / "bin" / "hold"
    held.touch()
    with site.run() as first:
        until_begun(site, first)
        for pid in parents_below(first.pid, site.log()[0]["pid"]):
            os.kill(pid, signal.SIGKILL)
        first.wait()
        with site.run() as second:
            until_waiting(second)
            assert site.done() == ["begin"]
            held.unlink()
            said = second.communicate(timeout=120)[0]
    assert second.returncode == 0, said
    assert site.done() == ["begin", "end", "begin", "end"]
    assert len(site.environments()) == 1
    assert [path.name for path in site.prefix.glob(".packages-*")] == []


def parents_below(top: int, child: int) -> list[int]:
    """Return the processes from `top` down to the parent of `child`."""
    chain = []
    while child != top:
        child = int(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[1])
        chain.append(child)
    return chain[::-1]


@pytest.mark.parametrize(
    ("version", "what"),
    [
        ("", "Snakemake needs a program 'conda' of version 24.7.1 or later"),
        ("23.11.0", "Snakemake needs a program 'conda' of version 24.7.1 or later; found conda 23.11.0"),
    ],
)
def test_no_conda_for_snakemake(site: Site, version: str, what: str) -> None:
    (site.root / "bin" / "conda").write_text(f"#!/bin/sh\necho conda {version}\n")
    with pytest.raises(TracelockError) as found:
        snakemake_conda({"PATH": str(site.root / "bin")})
    assert str(found.value).startswith(what + " (")
    assert "tracelock conda install FOLDER" in str(found.value)
    assert found.value.exit_code == 2


def test_micromamba_users_are_told(site: Site) -> None:
    (site.root / "bin" / "conda").unlink()
    program = site.root / "bin" / "micromamba"
    program.write_text("#!/bin/sh\necho 2.3.0\n")
    program.chmod(0o755)
    with pytest.raises(TracelockError, match=r"found micromamba 2\.3\.0 .micromamba users: micromamba create"):
        snakemake_conda({"PATH": str(site.root / "bin")})


def test_the_lock_for_a_snakefile(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    release = hold(site.prefix)
    waiting = [sys.executable, "-c", WAIT, str(site.prefix)]
    other = subprocess.Popen(waiting, stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    assert other.stdout.readline().startswith("waiting: another workflow creates environments in")
    assert other.poll() is None
    release()
    release()
    assert other.communicate(timeout=20)[0] == "mine\n"
    monkeypatch.setenv("TRACELOCK_ENVIRONMENTS_HELD", "1")
    with creation_lock(site.prefix):
        hold(site.prefix)()


WAIT = """
import sys
from pathlib import Path
from tracelock.envs.clients import failed
from tracelock.envs.prepare import creation_lock
with creation_lock(Path(sys.argv[1]), lambda text: print(text, flush=True)):
    print("mine", flush=True)
"""


def test_a_folder_that_cannot_be_written(site: Site) -> None:
    (site.root / "file").touch()
    with pytest.raises(TracelockError, match=r"cannot be written: File exists .choose a folder of your own"):
        prepare(Request(site.root / "file"))


def test_a_file_system_without_locks(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(prepare_module.fcntl, "flock", refuse)
    said: list[str] = []
    with creation_lock(site.prefix, said.append):
        assert (site.prefix / LOCK_NAME).exists()
    assert said == [
        f"warning: {site.prefix} has no file locks (Function not implemented): let one workflow at a time create "
        "environments there"
    ]
