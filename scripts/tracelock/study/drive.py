"""Run a study through Snakemake, and tell a person where it stands.

Snakemake's own output goes to a log; a person sees the plan, which runs are done, and the answer.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from tracelock.errors import EXIT_FAILED, Problem, TracelockError
from tracelock.io import read_json
from tracelock.runner import identity
from tracelock.runner.fingerprint import fingerprint
from tracelock.runner.orphans import end_with
from tracelock.runner.run import NOTICES_VARIABLE
from tracelock.study.failures import failure_report
from tracelock.study.layout import Layout
from tracelock.study.load import load_plan, workflow_environments
from tracelock.study.lock import await_study
from tracelock.study.place import IN_CHECKOUT, ROOT
from tracelock.study.progress import end_tree, follow
from tracelock.study.show import show_plan

_TAIL_LINES = 40
RESUME = shlex.join(["tracelock", *sys.argv[1:]]) if "study" in sys.argv else "tracelock study run STUDY"


@dataclass(frozen=True)
class Outcome:
    """How a study ended."""

    folder: Path
    exit_code: int
    ran: bool  # False where everything was there already


def run_study(study: Path, results: str, profile: Path | None, options: Sequence[str], console: Console) -> Outcome:
    """Run a study to its report. To be called within `stoppable`.

    Parameters
    ----------
    options
        Further options of Snakemake.

    Raises
    ------
    TracelockError
        If the study file is wrong; nothing has been started then.
    """
    use_conda = any(option in ("--use-conda", "--sdm", "--software-deployment-method") for option in options)
    _refuse_what_is_not_there(use_conda)
    elsewhere = profile is not None  # the runs may be made on other machines
    plan = load_plan(study, workflow_environments(study, use_conda), True if elsewhere else None)
    layout = Layout(plan, results)
    folder = Path(layout.base)
    keep_caches_here()
    command = _command(study, results, profile, [*options, *_changed_environments(folder)])
    if _nothing_to_do(folder, command):
        console.print(f"{plan.study.name}: everything is there already; nothing to run.")
        return Outcome(folder, 0, ran=False)
    if "-n" in options or "--dry-run" in options:
        show_plan(plan, console)
        return Outcome(folder, subprocess.run(command, check=False).returncode, ran=False)
    # All that can be refused is, before anything is said of what will be measured.
    await_study(layout.base, lambda line: console.print(line, markup=False))
    log = _log(folder)
    show_plan(plan, console)
    exit_code, failures = _execute(command, log, layout, console)
    if not exit_code:
        return Outcome(folder, 0, ran=True)
    _report_what_is_there(layout)
    environment = folder / "logs" / "environment-failure.txt"
    said = [*failure_report(failures), *_errors_in(log)]
    for line in said or ([] if environment.is_file() else [_tail(log)]):
        console.print(line, markup=False)
    console.print(f"[bold]The study did not finish[/bold]; Snakemake's log: {log}")
    console.print(f"To go on where it stopped: {RESUME}", markup=False)
    if environment.is_file():  # the reason, after all that was said
        console.print(f"tracelock: error: {environment.read_text(encoding='utf-8').strip()}", markup=False)
    return Outcome(folder, EXIT_FAILED, ran=True)


def _refuse_what_is_not_there(use_conda: bool) -> None:
    """Say what an installation cannot do that a checkout can.

    Raises
    ------
    TracelockError
        If there is no workflow, or programs would run in environments that have no tracelock beside them.
    """
    hint = "use a checkout of tracelock: make install, then its .venv/bin/tracelock"
    if not (ROOT / "Snakefile").is_file():
        raise TracelockError(Problem(str(ROOT), "holds no workflow: tracelock was installed without it", hint))
    if use_conda and not IN_CHECKOUT:
        raise TracelockError(Problem("--use-conda", "needs the programs beside the package", hint))


def keep_caches_here() -> None:
    """Have Snakemake keep its cache beside its own files where this user has no home to keep it in.

    The home of a service's user is often absent or not its own, and Snakemake ends where it cannot make the folder.
    """
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    there = next(folder for folder in (usual, *usual.absolute().parents) if folder.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        os.environ["XDG_CACHE_HOME"] = str(Path(".snakemake", "cache").absolute())


def _command(study: Path, results: str, profile: Path | None, options: Sequence[str]) -> list[str]:
    """Return the Snakemake call."""
    default = ROOT / "workflow" / "profiles" / "default"
    return [
        *(sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")),
        *("--workflow-profile", str(profile or default)),
        *options,
        *("--config", f"study={study}", f"results={results}", *(["gpu=yes"] if profile else [])),
    ]


def _changed_environments(folder: Path) -> list[str]:
    """Return the options that have environments checked again that have changed since their last check."""
    for check in folder.glob("envs/*/check.json"):
        prefix = check.with_name("prefix.txt")
        if prefix.is_file() and read_json(check, "envcheck").get("fingerprint") != fingerprint(_path_in(prefix)):
            return ["--forcerun", "environment"]
    return []


def _path_in(file: Path) -> Path:
    return Path(file.read_text(encoding="utf-8").strip())


def _nothing_to_do(folder: Path, command: list[str]) -> bool:
    """Ask Snakemake whether anything would run; without a report the answer is known."""
    if not (folder / "report.html").is_file():
        return False
    dry = subprocess.run([*command, "--dry-run"], capture_output=True, text=True, check=False)
    return dry.returncode == 0 and "Nothing to be done" in dry.stdout + dry.stderr


def _log(folder: Path) -> Path:
    """Return the file for Snakemake's own text, in a folder that is made."""
    log = folder / "logs" / "snakemake.txt"
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()
    except OSError as error:
        hint = "--results names a folder that can be written"
        raise TracelockError(Problem(str(error.filename), f"cannot be written: {error.strerror}", hint)) from None
    return log


def _execute(command: list[str], log: Path, layout: Layout, console: Console) -> tuple[int, list[dict[str, Any]]]:
    """Run Snakemake, its output in `log`, and show the runs as they are done; return its exit code and failures."""
    notices = log.with_name("notices.txt")
    notices.unlink(missing_ok=True)
    driver = identity.driver_text(identity.describe())
    variables = {**os.environ, identity.DRIVER_VARIABLE: driver, NOTICES_VARIABLE: str(notices.absolute())}
    parent = os.getpid()
    with log.open("w", encoding="utf-8") as stream:
        print(shlex.join(command), file=stream, flush=True)
        process = subprocess.Popen(
            command,
            stdout=stream,
            stderr=subprocess.STDOUT,
            env=variables,
            preexec_fn=lambda: end_with(parent, signal.SIGTERM),
        )
        try:
            keep_going = any(word in command for word in ("--keep-going", "-k"))
            board = follow(process, layout, console, notices, keep_going, log)
        except BaseException:
            end_tree(process)
            raise
    return process.returncode, board.failures


def _report_what_is_there(layout: Layout) -> None:
    """Compare and report the runs that succeeded: one failed variant does not take the others with it."""
    base = Path(layout.base)
    steps: tuple[tuple[str, list[str]], ...] = (
        ("compare.py", []),
        ("figures.py", ["--output", str(base / "figures")]),
        ("report.py", ["--output", str(base / "report.html")]),
    )
    if not any(Path(path).is_file() for path in layout.runs("analysis.json")):
        return
    for program, arguments in steps:
        command = [sys.executable, str(ROOT / "scripts" / program), "--results", str(base), *arguments]
        if subprocess.run(command, check=False).returncode:
            return


def _errors_in(log: Path) -> list[str]:
    """Return our own lines in Snakemake's log: what a person can mend, without what stands around it."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return list(dict.fromkeys(line for line in lines if line.startswith("tracelock: error: ")))


def _tail(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return os.linesep.join(lines[-_TAIL_LINES:])
