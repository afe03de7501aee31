"""Which process is which: a pid alone may have been given to another process since; with its start time it has not.

Standard library only. Where there is no /proc, a pid alone has to do.
"""

from __future__ import annotations

import os
import pwd
import shlex
import socket
import sys
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

# Set by whoever starts a study: the process that a local run ends with.
DRIVER_VARIABLE = "TRACELOCK_DRIVER"
_LONGEST_COMMAND = 200


def start_ticks(pid: int) -> int | None:
    """Return when a process started, in clock ticks since the machine's start; None for one that has ended.

    A zombie has ended: it holds nothing any more (proc(5), fields 3 and 22 of stat).
    """
    try:
        # The name in parentheses may hold spaces and parentheses; fields are counted from behind it.
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def describe(pid: int | None = None, **more: Any) -> dict[str, Any]:
    """Return who a process is (by default this one), for others to name it and to see whether it still lives.

    Parameters
    ----------
    more
        What it does, such as ``study`` and ``variant``.
    """
    pid = os.getpid() if pid is None else pid
    return {
        "pid": pid,
        "start_ticks": start_ticks(pid),
        "boot": _boot(),
        "host": socket.gethostname(),
        "user": _user(),
        "command": _command(pid),
        "since": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        **more,
    }


def is_alive(who: Mapping[str, Any]) -> bool | None:
    """Return whether the process that `describe` told of lives; None where that cannot be known (another machine)."""
    if who.get("host") != socket.gethostname():
        return None
    if who.get("boot") != _boot():
        return False
    if not Path("/proc/self/stat").exists():
        return _answers(int(who["pid"]))
    return who.get("start_ticks") is not None and start_ticks(int(who["pid"])) == who["start_ticks"]


def told(who: Mapping[str, Any]) -> str:
    """Return one line about a process for a person: pid, command, study, start, user."""
    study = f" of study {who['study']}" if who.get("study") else ""
    run = f", run {who['variant']} [{who['repeat']}]" if who.get("variant") else ""
    since = datetime.fromisoformat(str(who["since"])).astimezone()
    own = "" if who.get("user") == _user() else f", user {who.get('user')}"
    place = "" if who.get("host") == socket.gethostname() else f" on {who.get('host')}"
    return f"pid {who['pid']}{place}{study}{run}, since {since:%Y-%m-%d %H:%M:%S}{own}: {who.get('command') or '?'}"


def driver_text(who: Mapping[str, Any]) -> str:
    """Return what DRIVER_VARIABLE is set to: host, boot, pid, start, and the batch job that the process belongs to."""
    job = os.environ.get("SLURM_JOB_ID", "")
    return "|".join(str(part) for part in (who["host"], who["boot"], who["pid"], who["start_ticks"], job))


def driver_alive(text: str) -> bool | None:
    """Return whether the driver that `text` names lives; None where that is not to be asked.

    A job of a batch system may outlive the driver that sent it there, even on the same machine.
    """
    parts = text.split("|")
    if len(parts) != 5 or not parts[2].isdigit() or parts[4] != os.environ.get("SLURM_JOB_ID", ""):
        return None
    ticks = int(parts[3]) if parts[3].isdigit() else None
    return is_alive({"host": parts[0], "boot": parts[1], "pid": int(parts[2]), "start_ticks": ticks})


def _boot() -> str:
    """Return what changes when the machine starts anew, or an empty string."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user without a name
        return str(os.getuid())


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        words = sys.argv if pid == os.getpid() else []
    text = shlex.join(words)
    return text if len(text) <= _LONGEST_COMMAND else f"{text[: _LONGEST_COMMAND - 1]}…"


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
