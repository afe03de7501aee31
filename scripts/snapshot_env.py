"""Write what an environment holds, and hold it against its lock: a difference stops a study before its first run.

Reads files only: the environment's own Python need not start, and conda is not called.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from tracelock.envs.machine import machine_facts
from tracelock.envs.record import Locks, record_environment
from tracelock.errors import EXIT_FAILED, TracelockError
from tracelock.io import write_json
from tracelock.program import run_program


def arguments() -> argparse.Namespace:
    """Return what was asked for on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environment", required=True, help="name of the environment")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--prefix", type=Path, help="conda prefix or venv (default: that of this interpreter)")
    where.add_argument("--python", type=Path, help="interpreter whose prefix is meant")
    parser.add_argument(
        "--lock",
        type=Path,
        action="append",
        default=[],
        help="conda-lock file or pin file; for a venv a requirement file with hashes, may be given several times",
    )
    parser.add_argument("--driver", type=Path, help="folder of the requirement locks that a venv is held against")
    parser.add_argument("--platform", help="platform of the lock (default: that of the prefix)")
    parser.add_argument("--deep", action="store_true", help="compare the digest of every file of every package")
    parser.add_argument("--allow-unlocked", action="store_true", help="record a difference instead of stopping at it")
    parser.add_argument("--output", type=Path, required=True, help="folder for the snapshot and check.json")
    return parser.parse_args()


def prefix_of(python: Path) -> Path:
    """Return the prefix of another interpreter, as it says itself."""
    try:
        command = [str(python), "-I", "-c", "import sys; print(sys.prefix)"]
        return Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
    except (OSError, subprocess.CalledProcessError) as error:
        raise TracelockError(f"{python}: is no Python that starts: {error}") from None


def main() -> None:
    """Write the snapshot; exit with 1 where it differs from its lock and that is not allowed."""
    asked = arguments()
    prefix = asked.prefix or (prefix_of(asked.python) if asked.python else Path(sys.prefix))
    locks = Locks(tuple(asked.lock), asked.driver, asked.platform)
    options = {"deep": asked.deep, "allow_unlocked": asked.allow_unlocked}
    check = record_environment(asked.output, asked.environment, prefix, locks, **options)
    write_json(asked.output / "machine.json", machine_facts(Path(__file__).resolve().parent.parent))
    if check.ok is False and not asked.allow_unlocked:
        sys.exit(EXIT_FAILED)


if __name__ == "__main__":
    run_program(main)
