"""Whether a run had the machine to itself, by what was sampled beside it."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

from tracelock.diagnosis.samples import Column, read_samples

LEAST_SAMPLES = 10  # fewer say little of a run
OTHERS = 0.25  # of all cores, used by processes that are not the run's
BURSTS = 0.2  # of the samples: what takes cores away that often has moved the mean of the steps
BUSY = 90.0  # percent of all cores in use: below it others take nothing away
THROTTLED = 0.2  # of the samples
_HARMLESS = {"", "none", "gpu_idle", "idle", "applications_clocks_setting"}


def disturbance(run: Path, cores: int | None) -> str | None:
    """Return what disturbed a run, None where nothing is known to have.

    Parameters
    ----------
    run
        Folder of the run, with its samples.csv.
    cores
        Logical cores of its machine; None leaves the load of others unknown.
    """
    samples = read_samples(run / "samples.csv")
    return _others(samples, cores) or _throttled(samples.get("gpu_throttle", []))


def cores_of(results: Path, environment: str) -> int | None:
    """Return the logical cores of the machine, as the snapshot of an environment says."""
    try:
        machine = json.loads((results / "envs" / environment / "machine.json").read_text(encoding="utf-8"))
        return int(machine["cpu"]["cores_logical"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _others(samples: dict[str, Column], cores: int | None) -> str | None:
    """Return that other processes kept the machine busy, all the time or in bursts: all cores less what the run did."""
    pairs = zip(samples.get("cpu_percent", []), samples.get("process_cpu_percent", []), strict=False)
    known = [(machine, own) for machine, own in pairs if isinstance(machine, float) and isinstance(own, float)]
    if cores is None or len(known) < LEAST_SAMPLES:
        return None
    others = [(machine - own / cores) / 100 for machine, own in known if machine >= BUSY]
    taken = [share for share in others if share >= OTHERS]
    if len(taken) < BURSTS * len(known):
        return None
    when = "" if len(taken) == len(known) else f", in {100 * len(taken) / len(known):.0f} % of the samples"
    return f"other processes used {100 * fmean(taken):.0f} % of the {cores} cores, which were busy{when}"


def _throttled(reasons: Column) -> str | None:
    known = [str(reason).lower() for reason in reasons if reason is not None]
    if len(known) < LEAST_SAMPLES:
        return None
    slowed = [reason for reason in known if not set(reason.split("|")) <= _HARMLESS]
    if len(slowed) < THROTTLED * len(known):
        return None
    often = max(set(slowed), key=slowed.count)
    return f"the device was slowed down in {100 * len(slowed) / len(known):.0f} % of the samples ({often})"
