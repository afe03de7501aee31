"""How the factors of a study reach a script: as flags, variables, a JSON file, or Hydra's overrides."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FORMS = ("flags", "env", "json", "hydra")

# What is applied from outside, by wrapping; every other name is the script's own.
OUTSIDE = (
    "batch_size",
    "num_workers",
    "pin_memory",
    "persistent_workers",
    "prefetch_factor",
    "drop_last",
    "amp",
    "compile",
    "channels_last",
    "matmul_precision",
    "optimizer_foreach",
    "optimizer_fused",
    "threads",
    "cudnn_benchmark",
)
CHANGES_RESULT = {"batch_size": "batch size", "amp": "precision", "matmul_precision": "precision", "drop_last": "data"}


def apart(settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (what is applied from outside, what the script is told)."""
    outside = {name: value for name, value in settings.items() if name in OUTSIDE}
    return outside, {name: value for name, value in settings.items() if name not in OUTSIDE}


def command_with(
    command: Sequence[str], factors: Mapping[str, Any], form: str, folder: Path
) -> tuple[list[str], dict[str, str]]:
    """Return a command, and variables for its environment, that tell the script its factors.

    Parameters
    ----------
    form
        ``flags``: ``--name value``, in place of the same flag in the command; true is the flag alone, false none.
        ``hydra``: ``name=value``. ``env``: a variable ``NAME``. ``json``: a file, named by the last argument and by
        the variable ``TRACELOCK_FACTORS``.
    folder
        Where the JSON file is written.
    """
    words = list(command)
    if not factors:
        return words, {}
    if form == "env":
        return words, {name.upper(): _text(value) for name, value in factors.items()}
    if form == "json":
        file = folder / "factors.json"
        file.write_text(json.dumps(dict(factors), sort_keys=True), encoding="utf-8")
        return [*words, str(file)], {"TRACELOCK_FACTORS": str(file)}
    for name, value in factors.items():
        words = _hydra(words, name, value) if form == "hydra" else _flag(words, name, value)
    return words, {}


def _hydra(words: list[str], name: str, value: Any) -> list[str]:
    kept = [word for word in words if word.split("=", 1)[0].lstrip("+") != name or "=" not in word]
    return [*kept, f"{name}={'null' if value is None else _text(value)}"]


def _flag(words: list[str], name: str, value: Any) -> list[str]:
    """Return `words` with ``--name value`` in place of what the command says of that flag, else at its end."""
    flag = name if name.startswith("-") else f"--{name}"
    spellings = {flag, f"--{name.replace('_', '-')}"}
    kept: list[str] = []
    at, skip = None, False
    for word in words:
        if skip and not word.startswith("--"):
            skip = False
            continue
        skip = False
        if word.split("=", 1)[0] in spellings:
            at, flag, skip = len(kept), word.split("=", 1)[0], "=" not in word
            continue
        kept.append(word)
    new = [flag] if value is True else [] if value is False or value is None else [flag, _text(value)]
    return [*kept[:at], *new, *kept[at:]] if at is not None else [*kept, *new]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
