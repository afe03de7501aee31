"""``tracelock doctor``: what would spoil a long run on this machine, said before it begins.

`facts.gather` asks the machine, `diagnose` judges; so that a machine that nobody has can be judged too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from tracelock.envs.catalog import PLATFORM
from tracelock.envs.clients import HINT, SNAKEMAKE_NEEDS
from tracelock.envs.facts import Facts
from tracelock.envs.versions import satisfies
from tracelock.io import schema

Status = Literal["ok", "warn", "fail"]

# CUDA 11.8: NVIDIA's release notes, table of driver versions (minor-version compatibility, and native).
MINIMUM_DRIVER = "450.80.02"
NATIVE_DRIVER = "520.61.05"
# Compute capabilities that the cu118 builds of PyTorch carry code for.
FIRST_CAPABILITY, LAST_CAPABILITY = (3, 7), (9, 0)
# Bytes of an environment with its packages while it is made; archives of the CUDA ones are 3 GB, of `analysis` 0.14 GB.
CUDA_BYTES, CPU_BYTES = 10_000_000_000, 2_000_000_000


@dataclass(frozen=True)
class Line:
    """One thing that was looked at.

    Parameters
    ----------
    hint
        What mends it; empty if it is well.
    """

    name: str
    status: Status
    message: str
    hint: str = ""


def diagnose(facts: Facts, use_conda: bool = False) -> list[Line]:
    """Return everything that was looked at, in the order in which it matters.

    Parameters
    ----------
    use_conda
        Whether the run will use conda; without it, what is wrong with conda is a warning.
    """
    lines: list[Line] = []
    for look in (_platform, _conda, _settings, _locks, _glibc, _driver, _gpus, _disk, _file_locks, _local, _variables):
        lines += look(facts, "fail" if use_conda else "warn")
    return lines


def to_json(lines: list[Line], facts: Facts) -> dict[str, Any]:
    """Return the document ``tracelock/doctor/1``."""
    return {
        "schema": schema("doctor"),
        "ok": all(line.status != "fail" for line in lines),
        "checks": [asdict(line) for line in lines],
        "machine": dict(facts.machine),
    }


def _platform(facts: Facts, worst: Status) -> Iterator[Line]:
    machine = facts.machine
    here = f"{machine.get('system') or 'an unknown system'}, {machine.get('architecture')}"
    if machine.get("architecture") in ("x86_64", "AMD64") and machine.get("glibc"):
        yield Line("platform", "ok", f"{PLATFORM} ({here})")
    else:
        hint = "run without --use-conda, or on a Linux machine with an x86-64 processor and glibc"
        yield Line("platform", worst, f"{here}: the locks are for {PLATFORM}", hint)


def _conda(facts: Facts, worst: Status) -> Iterator[Line]:
    found = ", ".join(f"{client.kind} {client.version} ({client.path})" for client in facts.clients)
    if any(client.serves_snakemake for client in facts.clients):
        yield Line("conda", "ok", found)
    elif facts.clients:
        hint = (
            f"Snakemake calls 'conda' >= {SNAKEMAKE_NEEDS}: conda update -n base conda, or tracelock conda install DIR"
        )
        yield Line("conda", worst, f"{found}: none that Snakemake can use", hint)
    else:
        yield Line("conda", worst, "no conda, mamba or micromamba on PATH: --use-conda will not work", HINT)


def _settings(facts: Facts, worst: Status) -> Iterator[Line]:
    theirs = [channel for channel in facts.channels if re.search(r"repo\.anaconda\.com|^defaults$", channel)]
    if theirs:
        hint = "conda config --remove channels defaults; conda config --add channels conda-forge"
        what = "conda's settings name Anaconda's channels: a prompt about their terms can stop a batch job"
        yield Line("channels", "warn", what, hint)


def _locks(facts: Facts, worst: Status) -> Iterator[Line]:
    if facts.root is None:
        places = " and ".join(str(folder / "envs") for folder in facts.searched)
        what = f"no project: {places} hold no environment; this machine alone was looked at"
        yield Line("locks", worst, what, "run it in a project, or name one: --root FOLDER")
    elif facts.problems:
        what = f"{len(facts.problems)} problems with yaml, lock and pin; the first: {facts.problems[0]}"
        yield Line("locks", "fail", what, "tracelock env check")
    else:
        what = f"{facts.cuda + facts.cpu} environments in {facts.root / 'envs'}, whose yaml, lock and pin agree"
        yield Line("locks", "ok", what)


def _glibc(facts: Facts, worst: Status) -> Iterator[Line]:
    have = facts.machine.get("glibc")
    if have is None:
        return  # said by the platform's line
    unmet = [need for need in facts.glibc_needed if not satisfies(have, need)]
    if unmet:
        what = f"glibc {have}; locked packages need {', '.join(unmet)}"
        yield Line("glibc", worst, what, "use a newer system, or a container with one")
    else:
        need = ", ".join(facts.glibc_needed) or "none in particular"
        yield Line(
            "glibc", "ok", f"{have} (the locks need {need})" if facts.root else f"{have} (no lock to ask for one)"
        )


def _driver(facts: Facts, worst: Status) -> Iterator[Line]:
    driver = facts.machine.get("driver")
    update = f"ask for a driver of {NATIVE_DRIVER} or later"
    if driver is None:
        if facts.cuda:
            what = "no NVIDIA driver: CUDA environments can be made here, and run on the CPU"
            yield Line("driver", "warn", what, f"as expected without a GPU or on a login node; else {update}")
    elif not satisfies(driver, f">={MINIMUM_DRIVER}"):
        yield Line("driver", "fail", f"{driver}; CUDA 11.8 needs {MINIMUM_DRIVER} or later", update)
    elif not satisfies(driver, f">={NATIVE_DRIVER}"):
        what = f"{driver}: runs CUDA 11.8 by minor-version compatibility; code compiled at run time (PTX) will not run"
        yield Line("driver", "warn", what, update)
    else:
        yield Line("driver", "ok", f"{driver} (CUDA 11.8 needs {MINIMUM_DRIVER}, natively {NATIVE_DRIVER})")


def _gpus(facts: Facts, worst: Status) -> Iterator[Line]:
    for number, gpu in enumerate(facts.machine.get("gpus") or ()):
        name = f"GPU {number}"
        capability = _capability(gpu.get("compute_capability"))
        if capability is None:
            yield Line(name, "warn", f"{gpu['name']}: its compute capability is unknown", "does nvidia-smi run?")
            continue
        shown = f"{gpu['name']}, sm_{capability[0]}{capability[1]}"
        if capability < FIRST_CAPABILITY:
            yield Line(name, "fail", f"{shown} is older than the cu118 builds (sm_37 to sm_90)", "use another GPU")
        elif capability[0] > LAST_CAPABILITY[0]:
            hint = "use PyTorch 2.7 or later for CUDA 12.8, which is on PyPI and not on the pytorch channel"
            yield Line(name, "fail", f"{shown} is newer than the cu118 builds (sm_37 to sm_90)", hint)
        else:
            yield Line(name, "ok", f"{shown}, in the cu118 builds' list (sm_37 to sm_90)")


def _capability(text: object) -> tuple[int, int] | None:
    match = re.fullmatch(r"(\d+)\.(\d+)", str(text))
    return (int(match[1]), int(match[2])) if match else None


def _disk(facts: Facts, worst: Status) -> Iterator[Line]:
    if facts.free_bytes is None:
        yield Line("disk", "warn", f"how much is free at {facts.prefix} is unknown")
        return
    if facts.root is None:
        what = f"{facts.free_bytes / 1e9:.0f} GB free at {facts.prefix}; an environment with CUDA takes about"
        yield Line("disk", "ok", f"{what} {CUDA_BYTES / 1e9:.0f} GB, another {CPU_BYTES / 1e9:.0f} GB")
        return
    need = facts.cuda * CUDA_BYTES + facts.cpu * CPU_BYTES
    what = f"{facts.free_bytes / 1e9:.0f} GB free at {facts.prefix}; all environments take about {need / 1e9:.0f} GB"
    hint = "choose a larger disk with --conda-prefix; one that already holds them needs no more"
    enough = facts.free_bytes >= need
    largest = CUDA_BYTES if facts.cuda else CPU_BYTES if facts.cpu else 0
    status: Status = "ok" if enough else "warn" if facts.free_bytes >= largest else worst
    yield Line("disk", status, what, "" if enough else hint)


def _file_locks(facts: Facts, worst: Status) -> Iterator[Line]:
    if not facts.file_locks:
        what = f"the file system of {facts.prefix} has no file locks (flock)"
        yield Line("file locks", "warn", what, "let one workflow at a time create environments there")


def _local(facts: Facts, worst: Status) -> Iterator[Line]:
    guarded = bool(facts.variables.get("PYTHONNOUSERSITE"))
    for version, names in facts.user_site.items():
        some = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        what = f"~/.local holds packages for Python {version}: {some}"
        if guarded:
            yield Line("~/.local", "ok", f"{what}; PYTHONNOUSERSITE keeps them out")
        else:
            hint = "tracelock's own runs are safe; else export PYTHONNOUSERSITE=1"
            yield Line("~/.local", "warn", f"{what}, which shadow those of an environment", hint)
    if not facts.user_site:
        yield Line("~/.local", "ok", "holds no Python packages")


def _variables(facts: Facts, worst: Status) -> Iterator[Line]:
    if facts.variables.get("PYTHONPATH"):
        yield Line("PYTHONPATH", "warn", "is set: its packages shadow those of the environments", "unset PYTHONPATH")
    leaks = re.findall(r"[^:]*(?:cuda|cudnn|mkl|torch|intel)[^:]*", facts.variables.get("LD_LIBRARY_PATH", ""), re.I)
    if leaks:
        what = f"LD_LIBRARY_PATH puts {', '.join(leaks)} before the environments' own libraries"
        yield Line("LD_LIBRARY_PATH", "warn", what, "unset it (module unload) for the run")
