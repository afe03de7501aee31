"""The content hash that ties a lock to what was asked for, and the machine that locks assume."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tracelock.envs.spec import EnvSpec

VIRTUAL_PACKAGES = Path(__file__).with_name("virtual-packages.yaml")
# conda-lock's date for virtual packages; part of the content hash.
_VIRTUAL_TIME = 1577854800000


@cache
def virtual_packages() -> dict[str, dict[str, str]]:
    """Return the machine that locks assume: platform → virtual package → version, perhaps with a build."""
    subdirs = yaml.safe_load(VIRTUAL_PACKAGES.read_text(encoding="utf-8"))["subdirs"]
    return {name: dict(entry["packages"]) for name, entry in subdirs.items()}


def content_hash(spec: EnvSpec, platform: str) -> str:
    """Return the SHA-256 by which conda-lock ties a lock to its source (``--check-input-hash``).

    It covers the channels in their order, the dependencies and the virtual packages, not the comments or the order of
    the lines. Computed as by conda-lock 2 to 4 for a file without a pip section.
    """
    asked = {dependency.name: dependency for dependency in spec.dependencies}
    content = {
        "channels": [
            json.dumps({"url": channel.text, "used_env_vars": []}, separators=(",", ":"))
            for channel in spec.channels
            if channel.text != "nodefaults"
        ],
        "specs": [
            {
                "name": name,
                "manager": "conda",
                "category": spec.category,
                "extras": [],
                "version": dependency.version,
                "build": dependency.build,
                "conda_channel": dependency.channel,
                "hash": None,
            }
            for name, dependency in sorted(asked.items())
        ],
        "virtual_package_hash": {
            "noarch": {"info": {"subdir": "noarch"}, "packages": {}},
            platform: {"info": {"subdir": platform}, "packages": dict(_virtual_records(platform))},
        },
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("utf-8")).hexdigest()


def _virtual_records(platform: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, text in virtual_packages().get(platform, {}).items():
        version, _, build_string = text.partition(" ")
        build = f"{build_string}_0" if build_string else "0"
        yield (
            f"{name}-{version}-{build}.tar.bz2",
            {
                "name": name,
                "version": version,
                "build_string": build_string,
                "build_number": 0,
                "noarch": "",
                "depends": [],
                "timestamp": _VIRTUAL_TIME,
                "package_type": "virtual_system",
                "build": build,
                "subdir": platform,
            },
        )
