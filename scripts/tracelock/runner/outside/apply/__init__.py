"""Settings that are applied from outside, by wrapping constructors and setting flags."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..session import Session


def install(session: Session) -> None:
    """Apply every setting of the request."""
