"""Settings that are applied from outside, by wrapping constructors and setting flags; each change is noted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import loading, model, process, updating

if TYPE_CHECKING:
    from ..session import Session


def install(session: Session) -> None:
    """Apply every setting of the request."""
    if not session.request.settings:
        return
    process.install(session)
    loading.install(session)
    updating.install(session)
    model.install(session)
