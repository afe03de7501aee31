"""Where the workflow and its programs lie: in the checkout around the package, or where an installation put them."""

from __future__ import annotations

import site
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def _root() -> Path:
    """Return where the workflow lies: in the checkout around the package, else where an installation has put it."""
    around = PACKAGE.parents[1]
    places = (around, Path(sys.prefix, "share", "tracelock"), Path(site.getuserbase(), "share", "tracelock"))
    return next((place for place in places if (place / "workflow" / "Snakefile").is_file()), around)


ROOT = _root()
SCRIPTS = ROOT / "scripts"
IN_CHECKOUT = PACKAGE.parent == SCRIPTS
