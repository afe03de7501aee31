"""A study as it is run in earnest: by cron, in the background, by a user without a home or a checkout of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tracelock.study.drive import keep_caches_here

STUDY = """
name: small
workload: {build: "tracelock.runner.workloads.mlp:build"}
baseline: {batch_size: 8}
repeats: 1
device: cpu
allow_unlocked: true
timing: {warmup_steps: 1, steps: 4}
profiler: {wait: 0, warmup: 1, active: 2}
limits: {max_duration_s: 60}
"""
NOBODY = 65534
# It may read everything, as if the checkout and Python were readable for all, and write only what is its own.
AS_NOBODY = [
    *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
    *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"),
]


def ignored() -> None:
    """Ignore what nohup and a shell's background ignore, in a session without a terminal."""
    os.setsid()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)


def call(root: Path, folder: Path, *words: str, before: list[str] | None = None) -> subprocess.CompletedProcess[str]:
    """Call the command with cron's environment: no HOME, no TERM, the C locale."""
    return subprocess.run(
        [*(before or []), sys.executable, "-m", "tracelock.cli", *words],
        cwd=folder,
        env={
            "PATH": "/usr/bin:/bin",
            "LANG": "C",
            "PYTHONPATH": str(root / "scripts"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TRACELOCK_LOCK_DIR": str(folder / "locks"),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        preexec_fn=ignored,
        check=False,
    )


@pytest.mark.workflow
@pytest.mark.slow
@pytest.mark.parametrize("before", [None, AS_NOBODY], ids=["cron", "another user"])
def test_a_study_runs_where_nobody_looks(root: Path, tmp_path: Path, before: list[str] | None) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "small.yaml").write_text(STUDY)
    if before:
        if os.getuid() != 0 or not shutil.which("setpriv"):
            pytest.skip("only root can be another user, with setpriv of util-linux")
        shutil.chown(folder, NOBODY, NOBODY)
        if subprocess.run([*before, "true"], capture_output=True, check=False).returncode:
            pytest.skip("this container gives no capabilities on")
        assert subprocess.run([*before, "touch", root / "no"], capture_output=True, check=False).returncode
    done = call(root, folder, "study", "run", "small.yaml", before=before)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "run 1/1 done" in done.stdout
    results = folder / "results" / "small"
    assert (results / "report.html").is_file()
    trace = next(results.glob("runs/*/*/*/trace.json.gz")).relative_to(folder)
    for words in (["analyze", str(trace)], ["report", str(trace), "-o", "page.html"]):
        done = call(root, folder, *words, before=before)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Traceback" not in done.stdout + done.stderr
    assert (folder / "page.html").is_file()


def test_where_there_is_no_home_snakemakes_cache_is_kept_beside_its_own_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    for usual, kept in ((tmp_path / "home" / ".cache", False), (tmp_path / "file" / ".cache", True)):
        monkeypatch.setenv("XDG_CACHE_HOME", str(usual))
        keep_caches_here()
        assert os.environ["XDG_CACHE_HOME"] == str(tmp_path / ".snakemake" / "cache" if kept else usual)
