"""What ``tracelock init`` writes: a study that runs as it is, of a workload beside it or of somebody's command."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from tracelock.errors import Problem, TracelockError
from tracelock.io import write_text
from tracelock.study.place import IN_CHECKOUT

_STARTER = Path(__file__).parent / "starter"
_UNLOCKED = "allow_unlocked: true             # this Python was not made from tracelock's locks; results say so\n"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


def start(folder: Path, name: str, command: Sequence[str] = ()) -> list[Path]:
    """Write ``<name>.yaml`` and, without a command, the workload ``<name>_work.py``; return what was written.

    Raises
    ------
    TracelockError
        If the name is none for a study, or a file is there already; nothing has been written then.
    """
    if not _NAME.fullmatch(name):
        what = f"{name!r} cannot be a study's name: letters, digits, - and _"
        raise TracelockError(Problem("--name", what, f"--name {suggested(name)}"))
    work = f"{name.replace('-', '_')}_work.py"
    texts = {f"{name}.yaml": _study(name, work, command)}
    if not command:
        texts[work] = (_STARTER / "work.py.txt").read_text(encoding="utf-8")
    there = [folder / file for file in texts if (folder / file).exists()]
    if there:
        hint = "give another --name, or another folder"
        raise TracelockError([Problem(str(file), "is there already and stays as it is", hint) for file in there])
    for file, text in texts.items():
        _write(folder / file, text)
    return [folder / file for file in texts]


def suggested(text: str) -> str:
    """Return the name of a study that is nearest to any text: that of a folder."""
    bare = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-_")
    return bare or "mystudy"


def _study(name: str, work: str, command: Sequence[str]) -> str:
    if command:
        listed = ", ".join(json.dumps(word, ensure_ascii=False) for word in command)
        workload = (
            f"workload:\n  command: [{listed}]   # runs in the folder where the study is started\n  factors_as: flags"
        )
    else:
        workload = f"workload: {{ build: {work}:build }}"
    text = (_STARTER / "study.yaml.txt").read_text(encoding="utf-8").format(name=name, workload=workload)
    return text if IN_CHECKOUT else text + _UNLOCKED


def _write(file: Path, text: str) -> None:
    try:
        write_text(file, text)
    except OSError as error:
        raise TracelockError(Problem(str(file), f"cannot be written: {error.strerror}")) from None


def words_of(command: str) -> list[str]:
    """Return the words of a command line as a shell takes it apart.

    Raises
    ------
    TracelockError
        If a quotation mark is not closed, or there is no word.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise TracelockError(
            Problem("--command", f"is no command line: {error}", '--command "python train.py"')
        ) from None
    if not words:
        raise TracelockError(Problem("--command", "is empty", '--command "python train.py"'))
    return words
