"""Puts functions of ours around others', for good or for a while; what was there can be had back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

MARK = "_tracelock"


def wrap(
    owner: Any, name: str, around: Callable[[Callable[..., Any]], Callable[..., Any]], again: bool = False
) -> Callable[[], None]:
    """Replace ``owner.name`` by ``around(owner.name)`` and return what undoes it.

    Nothing happens where there is no such attribute, or it is ours already, unless `again` asks for one more layer.
    """
    original = getattr(owner, name, None)
    if original is None or (getattr(original, MARK, False) and not again):
        return lambda: None
    own = name in vars(owner)
    replaced = around(original)
    functools.update_wrapper(replaced, original)
    setattr(replaced, MARK, True)
    setattr(owner, name, replaced)

    def undo() -> None:
        if vars(owner).get(name) is not replaced:
            return  # somebody has put another one around ours
        if own:
            setattr(owner, name, original)
        else:
            delattr(owner, name)

    return undo
