"""Where in the user's own code something is built: file and line, found by the call stack."""

from __future__ import annotations

import os
import sys
import sysconfig
from types import FrameType

_HERE = os.path.dirname(os.path.abspath(__file__))
_FOREIGN = tuple(
    {os.path.abspath(path) + os.sep for name in ("stdlib", "platstdlib") if (path := sysconfig.get_path(name))}
)
_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def user_place(depth: int = 1) -> str | None:
    """Return ``file:line`` of the innermost caller whose code is the user's, or the outermost of a package, or None.

    Parameters
    ----------
    depth
        Frames to leave out.
    """
    frame: FrameType | None = sys._getframe(depth)
    package = None
    while frame is not None:
        name = frame.f_code.co_filename
        if not _is_ours(name):
            place = f"{name}:{frame.f_lineno}"
            if _is_users(name):
                return place
            package = place if any(part in name for part in _PACKAGES) else package
        frame = frame.f_back
    return package


def _is_ours(name: str) -> bool:
    return os.path.abspath(name).startswith(_HERE)


def _is_users(name: str) -> bool:
    """Return whether a file belongs neither to the standard library nor to an installed package."""
    if name.startswith("<"):
        return not name.startswith("<frozen")
    path = os.path.abspath(name)
    return not any(part in path for part in _PACKAGES) and not path.startswith(_FOREIGN)
