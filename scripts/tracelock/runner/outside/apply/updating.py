"""The optimizer's fused and multi-tensor paths: arguments of those classes of torch that have them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from ..patching import wrap
from ..places import user_place

if TYPE_CHECKING:
    from ..session import Session


def install(session: Session) -> None:
    """Replace ``foreach`` and ``fused`` of every optimizer of torch that is built from now on."""
    settings = session.request.settings
    names = {"foreach": "optimizer_foreach", "fused": "optimizer_fused"}
    wanted = {name: settings[key] for name, key in names.items() if settings.get(key) is not None}
    if not wanted:
        return
    for kind in vars(torch.optim).values():
        if isinstance(kind, type) and "__init__" in vars(kind) and _has(kind, wanted):
            wrap(kind, "__init__", lambda original: _init(session, wanted, original))


def _has(kind: type[Any], wanted: dict[str, Any]) -> bool:
    return all(name in inspect.signature(kind).parameters for name in wanted)


def _init(session: Session, wanted: dict[str, Any], original: Callable[..., Any]) -> Callable[..., Any]:
    parameters = inspect.signature(original).parameters

    def __init__(self: Any, params: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        params = list(params)  # a generator could not be given twice
        before = {name: kwargs.get(name, parameters[name].default) for name in ("foreach", "fused")}
        other = {"foreach": None} if wanted.get("fused") else {"fused": None} if wanted.get("foreach") else {}
        try:
            original(self, params, *args, **{**kwargs, **other, **wanted})
        except (RuntimeError, ValueError, TypeError) as error:
            session.notes.append(f"{type(self).__name__} does not take {wanted}: {error}")
            original(self, params, *args, **kwargs)
            return
        for name, value in wanted.items():
            if before[name] != value:
                session.changed(f"optimizer_{name}", before[name], value, user_place(2))

    return __init__
