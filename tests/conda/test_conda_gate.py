"""What must never pass as the locked environment: the study stops with the difference as a table."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conda_channel import SITE, SUBDIR
from conda_project import Project, serve

PROBE = ["python", "probe=1.0"]
CHECK = "results/study/envs/bench/check.json"
# The file that every run waits for; so nothing needs to be run for it to be right.
GATE = ("--", CHECK)


def with_probe(make_project, faults=None, **options) -> Project:
    project = make_project(**options)
    project.add_environment("bench", PROBE, faults)
    return project


def stopped(project: Project, *expected: str) -> str:
    """Run the whole study, and return what it said when the gate stopped it before the first run."""
    done = project.snakemake()
    said = done.stdout + done.stderr
    assert done.returncode != 0, said
    assert "tracelock: error: bench: is not what its lock says" in said
    rows = [line.split() for line in said.splitlines()]
    for row in expected:
        assert row.split() in rows, said
    assert not list(project.folder.glob("results/study/runs/*/*/*/run.json"))
    assert not (project.folder / CHECK).exists()
    return said


def prefix_of(project: Project) -> Path:
    return Path((project.folder / "results/study/envs/bench/prefix.txt").read_text().strip())


def replace(path: Path, data: bytes) -> None:
    """Put other bytes in a file's place; the old ones are a hard link to the package cache."""
    path.unlink()
    path.write_bytes(data)


def ended(project: Project, done: subprocess.CompletedProcess[str]) -> str:
    """Return the last line that was said when a pin could not be installed, and nothing else was either."""
    said = [line for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
    assert done.returncode == 1, "\n".join(said)
    assert not list(project.conda_prefix.glob("*_/conda-meta/probe-*.json"))
    assert not list(project.folder.glob("results/study/envs/bench/*.json"))
    return said[-1]


WRONG_HASH = (
    "tracelock: error: bench: its pin cannot be installed: probe-1.0-0.conda is not the file that was locked"
    " (its hash differs) (a broken download or mirror: try again, or another mirror)"
)


def test_a_wrong_hash_ends_the_study_with_the_one_line_last(make_project) -> None:
    project = with_probe(make_project, {"probe": {"sha256": "0" * 64}})
    assert ended(project, project.snakemake()) == WRONG_HASH
    command = ("study", "run", "study.yaml", "--conda-prefix", str(project.conda_prefix), "--use-conda")
    assert " ".join(ended(project, project.tracelock(*command)).split()) == WRONG_HASH
    prepared = project.run(
        sys.executable, "scripts/prepare_envs.py", "--conda-prefix", str(project.conda_prefix), "--",
        "--snakefile", "Snakefile", "--config", "study=study.yaml",
    )  # fmt: skip
    assert ended(project, prepared) == WRONG_HASH


def test_a_package_that_left_the_channel_ends_the_study(make_project, built_channel, tmp_path: Path) -> None:
    file = next(name for name in built_channel.records if name.startswith("probe-1.0-"))
    server = serve(built_channel.without(file, tmp_path / "channel"))
    smaller = next(server)
    try:
        complete = type(smaller)(built_channel.folder, built_channel.records, smaller.url)
        project = make_project(channel=complete)
        project.add_environment("bench", PROBE)
        line = ended(project, project.snakemake())
        assert line.startswith("tracelock: error: bench: its pin cannot be installed: probe-1.0-0.conda is not there")
    finally:
        server.close()


def test_the_same_release_with_other_bytes_is_told_by_its_hash(make_project, channel) -> None:
    # What was built is held against a lock whose author had another archive of the release.
    python = next(r for r in channel.records.values() if r["name"] == "python")
    project = with_probe(make_project)
    assert project.snakemake(CHECK).returncode == 0
    prefix = prefix_of(project)
    lock = project.lock("bench")
    lock.write_text(lock.read_text().replace(python["sha256"], "e1" * 32))
    done = project.tracelock("env", "gate", str(prefix), str(lock))
    assert done.returncode == 1
    assert f"hash python {('e1' * 32)[:47]}… {python['sha256'][:47]}…".split() in [
        r.split() for r in done.stdout.splitlines()
    ]


def test_allow_unlocked_goes_on_and_marks(make_project) -> None:
    project = with_probe(make_project, {"probe": {"sha256": "0" * 64}})
    study = project.folder / "study.yaml"
    study.write_text(study.read_text() + "allow_unlocked: true\n")
    done = project.snakemake(CHECK)
    assert done.returncode == 0, done.stdout + done.stderr
    check = project.read(CHECK)
    assert (check["ok"], check["unlocked"]) == (False, True)
    assert ("version", "probe") in {(d["kind"], d["name"]) for d in check["differences"]}
    assert "tracelock: warning: bench: is not what its lock says" in done.stdout + done.stderr


def test_what_was_done_to_an_environment_after_its_build_is_told(make_project, tmp_path: Path) -> None:
    project = with_probe(make_project)
    done = project.snakemake(CHECK)
    assert done.returncode == 0, done.stdout + done.stderr
    assert project.read(CHECK)["ok"] is True
    prefix, lock = prefix_of(project), str(project.lock("bench"))

    original = (prefix / SITE / "tracelock_probe.py").read_bytes()
    replace(prefix / SITE / "tracelock_probe.py", b"VERSION = '6.6.6'\n")
    (prefix / SITE / "sitecustomize.py").write_text("import os\n")
    deep = project.tracelock("env", "gate", str(prefix), lock, "--deep")
    assert deep.returncode == 1
    rows = [line.split() for line in deep.stdout.splitlines()]
    assert ["file", "probe:", f"{SITE}/tracelock_probe.py", "as", "packaged", "modified"] in rows, deep.stdout
    assert ["unowned", f"{SITE}/sitecustomize.py", "–", "belongs", "to", "no", "package"] in rows, deep.stdout
    assert project.tracelock("env", "gate", str(prefix), lock).returncode == 0  # only --deep reads every file
    replace(prefix / SITE / "tracelock_probe.py", original)
    (prefix / SITE / "sitecustomize.py").unlink()
    assert project.tracelock("env", "gate", str(prefix), lock, "--deep").returncode == 0

    # --target, because the test's Python may be Debian's, whose pip installs elsewhere.
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--no-index",
        "--no-deps",
        "--target",
        str(prefix / SITE),
        "--upgrade",
    ]
    subprocess.run([*pip, str(wheel(tmp_path, "somebody-elses", "0.3"))], check=True, capture_output=True)
    (project.folder / CHECK).unlink()
    said = stopped(project, "extra somebody-elses – 0.3")
    assert "pip put it there after the build" in said

    # pip over conda, same release: no record changes, only the files.
    subprocess.run([*pip, str(wheel(tmp_path, "tracelock-probe", "1.0"))], check=True, capture_output=True)
    stopped(project, "reinstalled probe as conda installed it replaced afterwards")


def wheel(folder: Path, name: str, release: str) -> Path:
    """Write a pure Python wheel."""
    module, info = name.replace("-", "_"), f"{name.replace('-', '_')}-{release}.dist-info"
    files = {
        f"{module}.py": f"VERSION = '{release}'  # by pip\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {release}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    digests = {path: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()) for path, text in files.items()}
    rows = [f"{path},sha256={sha.decode().rstrip('=')},{len(files[path])}" for path, sha in digests.items()]
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""])
    path = folder / f"{module}-{release}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in files.items():
            archive.writestr(member, text)
    return path


@pytest.mark.parametrize("fault", ["platform", "truncated"])
def test_a_lock_that_cannot_be_used_is_one_clear_line(make_project, fault: str) -> None:
    project = with_probe(make_project)
    lock = project.lock("bench")
    text = lock.read_text()
    if fault == "platform":
        lock.write_text(text.replace(SUBDIR, "osx-arm64"))
    else:
        lock.write_text(text[: text.index("sha256") + 3])
    (project.folder / "prefix" / "conda-meta").mkdir(parents=True)
    done = project.tracelock("env", "gate", "prefix", str(lock))
    assert done.returncode == 2
    assert done.stderr.startswith("tracelock: error: ")
    assert "Traceback" not in done.stderr
