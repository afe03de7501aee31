"""What a run says of the environment it runs in, and that it is still the one that was checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tracelock.errors import EXIT_FAILED, Problem, TracelockError
from tracelock.io import read_json
from tracelock.runner.fingerprint import fingerprint


def environment_facts(check: Path | None) -> dict[str, Any]:
    """Return what a run records of its environment.

    Parameters
    ----------
    check
        The ``check.json`` of the gate, or None for a run outside a study.

    Returns
    -------
    dict
        ``fingerprint`` of the environment as it is now; ``digest``, ``locked`` (equals its lock; None: has none) and
        ``unlocked`` (its results must be marked) as the gate found them, None where there was no gate.

    Raises
    ------
    TracelockError
        If packages were installed or removed since the check (exit code 1).
    """
    now = fingerprint()
    facts: dict[str, Any] = {"fingerprint": now, "digest": None, "locked": None, "unlocked": None}
    if check is None:
        return facts
    document = read_json(check, "envcheck")
    if document.get("fingerprint") not in (None, now):
        what = "the environment has changed since it was checked: packages were installed or removed"
        hint = "tracelock study run checks it again by itself; with Snakemake: --forcerun environment"
        raise TracelockError(Problem(str(check), what, hint), EXIT_FAILED)
    return {**facts, "digest": document["digest"], "locked": document["ok"], "unlocked": document["unlocked"]}
