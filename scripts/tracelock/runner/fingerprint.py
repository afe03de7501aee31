"""A cheap fingerprint of an environment: has anything been installed or removed since it was checked?

The gate reads every record of an environment and takes seconds; a run only needs to know that the environment is
still the one that passed. Names of package records carry name, version and build, so their list is enough for that.
"""

from __future__ import annotations

import hashlib
import sys
import sysconfig
from pathlib import Path


def fingerprint(prefix: Path | None = None) -> str:
    """Return the SHA-256 (hexadecimal) over the names of all package records below a prefix.

    Parameters
    ----------
    prefix
        Folder of a conda environment or a virtual environment; the running interpreter's without it.
    """
    names = sorted(_records(Path(sys.prefix) if prefix is None else prefix))
    return hashlib.sha256("\n".join(names).encode("utf-8")).hexdigest()


def _records(prefix: Path) -> set[str]:
    """Return ``conda:<record>`` and ``pip:<dist-info>`` names below `prefix`."""
    found = {f"conda:{path.stem}" for path in (prefix / "conda-meta").glob("*.json")}
    for site in _site_packages(prefix):
        found |= {f"pip:{path.name}" for path in site.glob("*.dist-info")}
    return found


def _site_packages(prefix: Path) -> list[Path]:
    """Return the package folders of `prefix`, whatever Python it holds."""
    folders = {*prefix.glob("lib/python3*/site-packages"), *prefix.glob("Lib/site-packages")}
    if prefix == Path(sys.prefix):
        folders.add(Path(sysconfig.get_path("purelib")))
    return sorted(folders)
