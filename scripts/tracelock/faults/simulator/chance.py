"""Chance that can be had again: generators by name."""

from __future__ import annotations

from random import Random


def seeded(*name: object) -> Random:
    """Return the generator of a name: ``seeded("job", 7)`` is the same each time, and unlike that of any other name."""
    return Random("/".join(str(part) for part in name))  # noqa: S311
