"""The runs of a study that failed: told at once, and together at the end, each cause once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tracelock.errors import TracelockError
from tracelock.io import read_json
from tracelock.runner.failure import CAUSES, FAILURE, place_text


def failure_of(run: Path) -> dict[str, Any] | None:
    """Return the failure.json beside a run.json that is not there, None where there is none."""
    path = run.with_name(FAILURE)
    if not path.is_file():
        return None
    try:
        return {**read_json(path, "failure"), "path": str(path.with_name("log.txt"))}
    except TracelockError:  # a newer attempt has just taken it away
        return None


def failure_line(failure: dict[str, Any]) -> str:
    """Return cause, exception and place in one line."""
    kind = f"{failure['exception']}: " if failure.get("exception") else ""
    return f"{CAUSES.get(failure['cause'], failure['cause'])}: {kind}{failure['what']}{place_text(failure['where'])}"


def failure_report(failures: Sequence[dict[str, Any]]) -> list[str]:
    """Return lines for the end of a study: every cause once, with the runs that it ended and one log."""
    lines = []
    for group in _groups(failures):
        first = group[0]
        runs = [f"{each['variant']} ({each['repeat']})" for each in group]
        named = ", ".join(runs[:6]) + (f" and {len(runs) - 6} more" if len(runs) > 6 else "")
        lines += [f"failed: {named}", f"  {failure_line(first)}", f"  log: {first['path']}"]
    return lines


def stops_study(failures: Sequence[dict[str, Any]], done: int) -> bool:
    """Return whether the first two runs failed in one way before their first step: then all will."""
    first = failures[:2]
    return (
        done == 0
        and len(first) == 2
        and all(each["before_steps"] and each["cause"] != "signal" for each in first)
        and first[0]["same"] == first[1]["same"]
    )


def _groups(failures: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for each in failures:
        groups.setdefault(str(each["same"]), []).append(each)
    return list(groups.values())
