"""``--quiet``: the answer alone."""

from __future__ import annotations

import os

QUIET = "TRACELOCK_QUIET"


def quiet() -> bool:
    """Return whether the answer alone is wanted: no progress, no tables, no notes."""
    return bool(os.environ.get(QUIET))
