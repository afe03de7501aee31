"""Settings of DataLoaders: their arguments are replaced as they are built."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import DataLoader, IterableDataset

from ..patching import wrap
from ..places import user_place

if TYPE_CHECKING:
    from ..session import Session

_ARGUMENTS = ("batch_size", "num_workers", "pin_memory", "persistent_workers", "prefetch_factor", "drop_last")
_SIGNATURE = inspect.signature(DataLoader.__init__)


def install(session: Session) -> None:
    """Replace the arguments of every DataLoader that is built from now on."""
    wanted = {name: session.request.settings[name] for name in _ARGUMENTS if name in session.request.settings}
    if wanted:
        wrap(DataLoader, "__init__", lambda original: _init(session, wanted, original), again=True)


def _init(session: Session, wanted: dict[str, Any], original: Callable[..., Any]) -> Callable[..., Any]:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        try:
            given = dict(_SIGNATURE.bind(self, *args, **kwargs).arguments)
        except TypeError:  # a wrong call fails as it would without us
            original(self, *args, **kwargs)
            return
        given.pop("self")
        more = given.pop("kwargs", {})
        changed = arguments_for(given, wanted)
        for name, value in changed.items():
            before = given.get(name, _SIGNATURE.parameters[name].default)
            if before != value:
                session.changed(name, before, value, user_place(2))
        original(self, **{**given, **more, **changed})

    return __init__


def arguments_for(given: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a DataLoader that `wanted` replaces, only those that it can have.

    Parameters
    ----------
    given
        Its arguments by name, as the script gives them.
    """
    changed = dict(wanted)
    if given.get("batch_sampler") is not None or given.get("batch_size", 1) is None:
        changed.pop("batch_size", None)
        changed.pop("drop_last", None)
    if isinstance(given.get("dataset"), IterableDataset):
        # Each worker would read the whole stream: other data than the script's.
        for name in ("num_workers", "persistent_workers", "prefetch_factor"):
            changed.pop(name, None)
    if changed.get("pin_memory") and not torch.cuda.is_available():
        changed.pop("pin_memory")
    workers = changed.get("num_workers", given.get("num_workers", 0))
    if not workers:
        # torch refuses both without workers, also those that the script gives.
        changed.pop("persistent_workers", None)
        changed.pop("prefetch_factor", None)
        if given.get("persistent_workers"):
            changed["persistent_workers"] = False
        if given.get("prefetch_factor") is not None:
            changed["prefetch_factor"] = None
    if changed.get("prefetch_factor", 0) is None and workers:
        changed.pop("prefetch_factor")
    return changed
