"""The ``conda`` that Snakemake finds first on its PATH: the machine's own, but it ends where a pin cannot be installed.

Snakemake warns, solves the loose yaml instead (over the network, for minutes) and goes on with exit code 0. Here the
second call is refused at once, and the reason is kept as one line, which whoever started Snakemake prints last.
Standard library only.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tracelock.envs.clients import failed

_FAILURE = "failure.txt"
_HEAD = re.compile(r"^# Rendered from (?:.*/)?(\S+?)(?:\.conda-lock)?\.ya?ml\b", re.MULTILINE)
# Keys and channels that conda-lock knows; conda 26 ignores the first and fetches the second as a channel.
_NOT_CONDAS = re.compile(r"^(platforms:.*\n(?:[ -].*\n)*|\s*-\s*nodefaults\s*\n)", re.MULTILINE)


class Guard:
    """A folder for the head of PATH whose ``conda`` is the guarded one.

    Parameters
    ----------
    conda
        The machine's own.
    fall_back
        Whether Snakemake may solve the yaml where a pin cannot be installed (the study allows what is not locked).
    """

    def __init__(self, conda: str | Path, fall_back: bool = False) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tracelock-conda-"))
        program = self.folder / "conda"
        words = [sys.executable, str(Path(__file__).resolve()), str(conda), str(self.folder), str(int(fall_back))]
        program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
        program.chmod(0o755)

    def failure(self) -> str | None:
        """Return the line that says which pin could not be installed and why; ``None`` if all could."""
        with contextlib.suppress(OSError):
            return (self.folder / _FAILURE).read_text(encoding="utf-8").strip() or None
        return None

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


def guard_this_process(file: Path, fall_back: bool) -> None:
    """Put a guard on this process's PATH; at its end the line of a failure is printed last, and written to `file`.

    Does nothing where there is no conda, or a guard stands already.
    """
    conda = shutil.which("conda")
    file.unlink(missing_ok=True)
    if conda is None or Path(conda).parent.name.startswith("tracelock-conda-"):
        return
    guard = Guard(conda, fall_back)
    os.environ["PATH"] = os.pathsep.join([str(guard.folder), os.environ.get("PATH", "")])
    atexit.register(_tell, guard, file, os.getpid())


def _tell(guard: Guard, file: Path, process: int) -> None:
    if os.getpid() != process:
        return  # a fork: the folder is still needed
    if line := guard.failure():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{line}\n", encoding="utf-8")
        print(f"tracelock: error: {line}", file=sys.stderr, flush=True)
    guard.close()


def main(words: Sequence[str]) -> int:
    """Answer one call of conda: ``guard.py CONDA FOLDER FALL_BACK [ARGUMENT]...``."""
    conda, folder, fall_back, *call = words
    file = _file_of(call)
    if file is not None and call[:1] == ["create"] and file.name.endswith(".pin.txt"):
        return _install_pin([conda, *call], file, Path(folder) / _FAILURE, fall_back == "1")
    if file is None or call[:2] != ["env", "create"] or not _pin_of(file).exists():
        os.execv(conda, [conda, *call])  # noqa: S606 (this process becomes conda)
    if fall_back == "1":
        with _for_conda(file) as plain:
            call = [str(plain) if word == str(file) else word for word in call]
            return subprocess.run([conda, *call], check=False).returncode
    reason = Path(folder) / _FAILURE
    said = reason.read_text(encoding="utf-8").strip() if reason.exists() else "the pin could not be installed"
    print(f"tracelock: error: {said}; nothing else is installed in its place", file=sys.stderr)
    return 1


def _file_of(call: Sequence[str]) -> Path | None:
    for position, word in enumerate(call):
        if word in ("--file", "-f") and position + 1 < len(call):
            return Path(call[position + 1].strip("'\""))
        if word.startswith("--file="):
            return Path(word.partition("=")[2])
    return None


def _pin_of(yaml: Path) -> Path:
    return yaml.with_name(f"{yaml.name.removesuffix('.yaml')}.pin.txt")


def _install_pin(command: Sequence[str], pin: Path, failure: Path, fall_back: bool) -> int:
    """Let conda install a pin; if it cannot, keep one line on the first failure."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    said: list[str] = []
    with process:
        for line in process.stdout or ():
            sys.stdout.write(line)
            sys.stdout.flush()
            said.append(line)
    if process.returncode and not fall_back and not failure.exists():
        problem = failed(f"{_name_of(pin)}: its pin cannot be installed", "".join(said)).problems[0]
        failure.write_text(f"{problem}\n", encoding="utf-8")
    return process.returncode


def _name_of(pin: Path) -> str:
    found = _HEAD.search(pin.read_text(encoding="utf-8", errors="replace"))
    return found[1] if found else "an environment"


@contextlib.contextmanager
def _for_conda(yaml: Path) -> Iterator[Path]:
    """Yield a copy of an environment file without what conda itself does not understand."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / yaml.name
        copy.write_text(_NOT_CONDAS.sub("", yaml.read_text(encoding="utf-8")), encoding="utf-8")
        yield copy


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
