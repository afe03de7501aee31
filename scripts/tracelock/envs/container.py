"""In which container image this process runs, and by what digest a colleague gets the same one.

A process inside sees little of its image: Apptainer tells the file, podman the image's id, Docker nothing. What cannot
be seen is given from outside: ``TRACELOCK_CONTAINER_DIGEST=sha256:…``. Standard library only, Python 3.10 syntax.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tracelock.io import file_digest

VARIABLE = "TRACELOCK_CONTAINER_DIGEST"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_LARGEST = 16 << 30  # bytes of an image file that is hashed: some ten seconds
_FROM = ("org.label-schema.usage.singularity.deffile.from", "org.opencontainers.image.base.name")


def container_facts(
    unknown: dict[str, str], variables: Mapping[str, str] = os.environ, root: Path = Path("/")
) -> dict[str, str | None] | None:
    """Return kind, image, digest and what the image was made from; ``None`` outside of any container.

    Parameters
    ----------
    unknown
        Gets the reason why no digest is known, under ``container.digest``.
    """
    found = _apptainer(variables, root) or _podman(root) or _docker(root)
    if found is None:
        return None
    given = variables.get(VARIABLE)
    if given and _DIGEST.fullmatch(given):
        return {**found, "digest": given}
    if given:
        unknown["container.digest"] = f"{VARIABLE} is no sha256:<64 hexadecimal digits>"
    elif found["digest"] is None:
        unknown["container.digest"] = f"not visible from inside; set {VARIABLE} to what the registry or file says"
    return found if not given else {**found, "digest": None}


def _apptainer(variables: Mapping[str, str], root: Path) -> dict[str, str | None] | None:
    image = variables.get("APPTAINER_CONTAINER") or variables.get("SINGULARITY_CONTAINER")
    if not image and not (root / ".singularity.d").is_dir():
        return None
    file = Path(image) if image else None
    return {
        "kind": "apptainer",
        "image": file.name if file else None,  # the folder is its owner's
        "digest": _file_digest(file),
        "from": _label(root / ".singularity.d" / "labels.json"),
    }


def _file_digest(file: Path | None) -> str | None:
    try:
        if file is None or not file.is_file() or file.stat().st_size > _LARGEST:
            return None
        return f"sha256:{file_digest(file)}"
    except OSError:
        return None


def _label(file: Path) -> str | None:
    try:
        labels: Any = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    found = (labels.get(name) for name in _FROM) if isinstance(labels, dict) else ()
    return next((str(name) for name in found if name), None)


def _podman(root: Path) -> dict[str, str | None] | None:
    try:
        text = (root / "run" / ".containerenv").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    pairs = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, re.MULTILINE))
    identity = pairs.get("imageid", "")
    digest = f"sha256:{identity}" if _DIGEST.fullmatch(f"sha256:{identity}") else None
    return {"kind": "podman", "image": pairs.get("image") or None, "digest": digest, "from": None}


def _docker(root: Path) -> dict[str, str | None] | None:
    return {"kind": "docker", "image": None, "digest": None, "from": None} if (root / ".dockerenv").exists() else None
